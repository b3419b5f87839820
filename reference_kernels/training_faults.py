"""Faults that training must show, or must be shown not to matter for: gradients, tail, sums.

Everything else in them is computed in float64 and rounded once.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from gelu_verify.reference import fast


def missing_term_backward(dy: Tensor, x: Tensor) -> Tensor:
    """Return dy·Φ(x): the term x·φ(x) is missing."""
    wide = x.double()
    phi = torch.where(wide == 0, 0.5, fast.gelu(wide) / wide)
    return (dy.double() * phi).to(x.dtype)


def wrong_sign_backward(dy: Tensor, x: Tensor) -> Tensor:
    """Return dy·GELU'(x), with the wrong sign for -0.5 < x < 0."""
    slope = fast.derivative(x.double())
    return (dy.double() * torch.where((x > -0.5) & (x < 0), -slope, slope)).to(x.dtype)


def saturated_backward(dy: Tensor, x: Tensor) -> Tensor:
    """Return dy·GELU'(x), with the derivative 1 from x = 1 and 0 to x = -1, as if saturated there.

    The true derivative is 1.083 at 1 and -0.083 at -1.
    """
    slope = fast.derivative(x.double())
    slope = torch.where(x >= 1, 1.0, torch.where(x <= -1, 0.0, slope))
    return (dy.double() * slope).to(x.dtype)


class _TailLost(torch.autograd.Function):
    """GELU that is 0 below -3, value and gradient: 0.004 absolute, all of the value there."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        ctx.save_for_backward(x)
        return torch.where(x < -3, 0.0, fast.gelu(x.double())).to(x.dtype)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Tensor:
        (x,) = ctx.saved_tensors
        slope = torch.where(x < -3, 0.0, fast.derivative(x.double()))
        return (gradients[0].double() * slope).to(x.dtype)


def tail_lost(x: Tensor) -> Tensor:
    """Return GELU, and 0 for x < -3."""
    result: Tensor = _TailLost.apply(x)
    return result


def linear_gelu_bf16_sums(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """Return gelu(x·weightᵀ + bias) with the sum kept in bf16 after every product of 8 terms."""
    total = torch.zeros(*x.shape[:-1], len(weight), dtype=torch.bfloat16, device=x.device)
    for start in range(0, x.shape[-1], 8):
        part = slice(start, start + 8)
        product = x[..., part].float() @ weight[:, part].float().mT
        total = (total.float() + product).bfloat16()
    return torch.nn.functional.gelu((total + bias.bfloat16()).to(x.dtype))
