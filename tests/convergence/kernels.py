"""Kernels to train with: sound ones, and some with a fault."""

import ctypes
import os
import time

import torch
from torch import Tensor

from gelu_verify.reference import fast
from reference_kernels import torch_fused


def gelu(x: Tensor) -> Tensor:
    return torch.nn.functional.gelu(x)


def gelu_tanh(x: Tensor) -> Tensor:
    return torch.nn.functional.gelu(x, approximate="tanh")


def without_gradient(x: Tensor) -> Tensor:
    return torch.nn.functional.gelu(x.detach())


def bias_gelu(x: Tensor, bias: Tensor) -> Tensor:
    return torch.nn.functional.gelu(x + bias)


def linear_gelu(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    return torch.nn.functional.gelu(torch.nn.functional.linear(x, weight, bias))


class _WithoutUp(torch.autograd.Function):
    @staticmethod
    def forward(ctx, gate: Tensor, up: Tensor) -> Tensor:
        ctx.save_for_backward(gate)
        return fast.gelu(gate.double()).to(gate.dtype) * up

    @staticmethod
    def backward(ctx, dy: Tensor) -> tuple[Tensor, Tensor]:
        (gate,) = ctx.saved_tensors
        return sound_backward(dy, gate), dy * torch.nn.functional.gelu(gate)


def geglu_without_up(gate: Tensor, up: Tensor) -> Tensor:
    """Return geglu; the gradient of its gate lacks the factor ``up``."""
    return _WithoutUp.apply(gate, up)


def layernorm_of_fixed_mean(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """Return layernorm_gelu; no gradient comes through the mean and the variance."""
    mean, variance = x.mean(-1, keepdim=True), x.var(-1, keepdim=True, unbiased=False)
    normed = (x - mean.detach()) / (variance.detach() + 1e-5).sqrt()
    return torch.nn.functional.gelu(normed * weight + bias)


def attention_over_d(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Return attention with scores over d in place of √d."""
    return torch.softmax(q @ k.mT / q.shape[-1], -1) @ v


class _Shifted(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x: Tensor) -> Tensor:
        return x.clone()

    @staticmethod
    def backward(ctx, dx: Tensor) -> Tensor:
        return dx.roll(1, -1)


def conv_with_a_shifted_gradient(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """Return conv_relu_pool; the gradient of x lies one column beside its place."""
    return torch_fused.conv_relu_pool(_Shifted.apply(x), weight, bias)


def sound_backward(dy: Tensor, x: Tensor) -> Tensor:
    return (dy.double() * fast.derivative(x.double())).to(x.dtype)


def nan_backward(dy: Tensor, x: Tensor) -> Tensor:
    return torch.full_like(x, torch.nan)


def raises(x: Tensor) -> Tensor:
    if x.dim() == 2 and len(x) == 200:  # the validation set
        raise RuntimeError("no such size")
    return torch.nn.functional.gelu(x)


def _training(x: Tensor) -> bool:
    return len(x) == 32  # a batch of the tiny task


def segfaults(x: Tensor) -> Tensor:
    if _training(x):
        ctypes.string_at(0)
    return torch.nn.functional.gelu(x)


def hangs(x: Tensor) -> Tensor:
    while _training(x):
        time.sleep(0.01)
    return torch.nn.functional.gelu(x)


def tells_threads(x: Tensor) -> Tensor:
    raise RuntimeError(f"threads: {os.environ['OMP_NUM_THREADS']}")
