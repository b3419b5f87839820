"""Sound fused kernels that defects and variants are built on, of any float dtype.

Each computes in float64 (attention in fp32 at least: its scores are many) and rounds once, in torch
operations that autograd differentiates, so that what is wrong with a defect is its fault and
nothing else.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.nn import functional

from reference_kernels.sound import forms

EPSILON = 1e-5


@cache
def with_gradient(
    form: Callable[..., Tensor], gradient: Callable[..., tuple[Tensor, ...]]
) -> Callable[..., Tensor]:
    """Return ``form`` with ``gradient(dy, *arguments)`` as its backward; arguments are saved."""

    class WithGradient(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, *arguments: Tensor) -> Tensor:
            ctx.save_for_backward(*arguments)
            return form(*arguments)

        @staticmethod
        @once_differentiable
        def backward(ctx: Any, dy: Tensor) -> tuple[Tensor, ...]:
            return gradient(dy, *ctx.saved_tensors)

    apply: Callable[..., Tensor] = WithGradient.apply
    return apply


def gelu(x: Tensor) -> Tensor:
    """Return x·erfc(-x/√2)/2 in the dtype of x; torch's own fp64 loses the tail to 1 + erf.

    Below -200 it is -0 in every dtype, as at -inf, where the product would be NaN.
    """
    y = x.clamp(min=-200.0)
    return 0.5 * y * torch.erfc(-y * forms.ROOT_HALF)


def linear_gelu(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """Return f(x·weightᵀ + bias)."""
    return gelu(linear(x, weight) + bias.double()).to(x.dtype)


def linear(x: Tensor, weight: Tensor) -> Tensor:
    """Return x·weightᵀ in float64."""
    return functional.linear(x.double(), weight.double())


def tf32(x: Tensor) -> Tensor:
    """Return fp32 without its last 13 bits; autograd sees the identity."""
    cut = (x.detach().contiguous().view(torch.int32) & ~0x1FFF).view(torch.float32)
    return x + (torch.where(torch.isfinite(x), cut, x) - x).detach().nan_to_num(nan=0.0)


def bias_gelu(x: Tensor, bias: Tensor) -> Tensor:
    """Return f(x + bias)."""
    forms.require_floats(x, bias)
    return gelu(x.double() + bias.double()).to(x.dtype)


def geglu(gate: Tensor, up: Tensor) -> Tensor:
    """Return f(gate)·up."""
    forms.require_floats(gate, up)
    return (gelu(gate.double()) * up.double()).to(gate.dtype)


def layernorm_gelu(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """Return f of the normalised, scaled and shifted rows."""
    row = x.double()
    centred = row - row.mean(-1, keepdim=True)
    variance = centred.square().mean(-1, keepdim=True)
    return scaled_gelu(centred * torch.rsqrt(variance + EPSILON), weight, bias).to(x.dtype)


def scaled_gelu(normed: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """Return f(normed·weight + bias) in the dtype of normed, the last step of a layer norm."""
    return gelu(normed * weight.to(normed.dtype) + bias.to(normed.dtype))


def conv_relu_pool(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """Return the 2×2 maxima of the rectified 3×3 convolution with padding 1."""
    return pooled(convolved(x, weight, bias)).to(x.dtype)


def convolved(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """Return the pre-activations (N, O, H, W) in float64."""
    return functional.conv2d(x.double(), weight.double(), bias.double(), padding=1)


def pooled(sums: Tensor) -> Tensor:
    """Return the 2×2 maxima of rectified sums."""
    return functional.max_pool2d(functional.relu(sums), 2)


def attention(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Return softmax(q·kᵀ/√d)·v."""
    weights = torch.softmax(scores(q, k), -1)
    return (weights @ v.to(weights.dtype)).to(q.dtype)


def scores(q: Tensor, k: Tensor) -> Tensor:
    """Return q·kᵀ/√d in fp32, in fp64 for fp64."""
    wide = wider(q.dtype)
    return q.to(wide) @ k.to(wide).transpose(-2, -1) / math.sqrt(max(q.shape[-1], 1))


def largest(scores: Tensor) -> Tensor:
    """Return the largest score of each row (..., 1), -inf where there is none."""
    return functional.pad(scores, (1, 0), value=-torch.inf).amax(-1, keepdim=True)


def wider(dtype: torch.dtype) -> torch.dtype:
    """Return fp32, or fp64 for fp64: what 16-bit kernels compute in."""
    return torch.float64 if dtype == torch.float64 else torch.float32
