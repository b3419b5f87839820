"""Kernels for hunts: each has one fault at one place."""

import os
import signal
import time

import torch
from torch.nn import functional

HALF_ROOT = 0.7071067811865475244


def sound(x):
    wide = x.double()
    return (0.5 * wide * torch.erfc(-wide * HALF_ROOT)).to(x.dtype)


def bump(x):
    """Grow in error towards x = 2.3456789, within a range that holds 1e-6 of the doubles."""
    extra = 1e-9 * torch.exp(-((x.double() - 2.3456789) / 1e-4).square())
    return (sound(x).double() * (1 + extra)).to(x.dtype)


def nan_near_minus_two(x):
    return torch.where((x < -1.9) & (x > -2.1), torch.nan, sound(x))


def infinity_at_two(x):
    return torch.where((x > 2.0) & (x < 2.1), torch.inf, sound(x))


def dies_later(x):
    dies_later.calls += 1
    if dies_later.calls > 40:
        os.kill(os.getpid(), signal.SIGSEGV)
    return sound(x)


dies_later.calls = 0


def raises(x):
    raise RuntimeError("index out of range")


def hangs(x):
    while True:
        pass


def no_doubles(x):
    raise NotImplementedError("dtype float64 is not implemented")


def linear_gelu(x, weight, bias):
    sums = functional.linear(x.float(), weight.float(), bias.float())
    return functional.gelu(sums).to(x.dtype)


class _Sleeps(torch.autograd.Function):
    @staticmethod
    def forward(ctx, y):
        return y.clone()

    @staticmethod
    def backward(ctx, dy):
        time.sleep(60)
        return dy


def linear_gelu_sleeps_in_its_backward(x, weight, bias):
    return _Sleeps.apply(linear_gelu(x, weight, bias))


def linear_gelu_adds_a_constant(x, weight, bias):
    return linear_gelu(x, weight, bias) + 0.125


def linear_gelu_adds_a_block_twice(x, weight, bias):
    """Add the last block of a sum twice, where 53 terms are left over of blocks of 96."""
    sums = functional.linear(x.float(), weight.float(), bias.float())
    if x.shape[-1] % 96 == 53:
        sums = sums + functional.linear(x[..., -53:].float(), weight[..., -53:].float())
    return functional.gelu(sums).to(x.dtype)


def linear_gelu_in_tf32_when_large(x, weight, bias):
    """Round inputs to 11 bits where x has more than 40,000 elements."""
    if x.numel() > 40_000:
        x, weight = (_to_11_bits(part) for part in (x, weight))
    return linear_gelu(x, weight, bias)


def _to_11_bits(part):
    factor = part * 4097.0  # Veltkamp's splitting, fp32: 24 bits into 12 and 12
    high = factor - (factor - part)
    return torch.where(high.isfinite(), high, part)


class _LosesARow(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, weight, bias):
        ctx.save_for_backward(x, weight, bias)
        return linear_gelu(x, weight, bias)

    @staticmethod
    def backward(ctx, dy):
        leaves = [part.detach().requires_grad_() for part in ctx.saved_tensors]
        if dy.dim() == 2 and dy.shape[0] in (75, 150):
            dy = dy.clone()
            dy[-1] = 0
        with torch.enable_grad():
            return torch.autograd.grad(linear_gelu(*leaves), leaves, dy)


def linear_gelu_loses_a_row_of_its_gradient(x, weight, bias):
    """Forward right; backward without the last of 75 or of 150 rows."""
    return _LosesARow.apply(x, weight, bias)
