"""The formulas in float64 for training: value and derivative from one evaluation.

f(x) = x·s(x) and f'(x) = s(x) + x·s'(x), with s = Φ = erfc(−x/√2)/2 and s' = φ for ``erf``,
σ(v) and v'·σ(v)·σ(−v) for ``tanh`` (v = 2√(2/π)(x + 0.044715x³)) and ``sigmoid`` (v = 1.702x).
:mod:`gelu_verify.reference.fast` has a certificate for the numbers of fp32 and takes three times
as long; here x is any float64, and a few units of 2^-53 (x² of them in the left tail, from rounding
the argument) are nothing beside what a result is rounded to.
"""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

_SQRT_HALF = math.sqrt(0.5)
_DENSITY = 1 / math.sqrt(2 * math.pi)
_INNER, _CUBIC, _QUICK = 2 * math.sqrt(2 / math.pi), 0.044715, 1.702


def value_and_slope(x: Tensor, formula: str) -> tuple[Tensor, Tensor]:
    """Return f(x) and f'(x), both float64, the shape of x, which is float64 too."""
    if formula == "erf":
        gate = torch.special.erfc(x * -_SQRT_HALF).mul_(0.5)
        rise = x.square().mul_(-0.5).exp_().mul_(_DENSITY)
        return x * gate, torch.addcmul(gate, x, rise)
    if formula == "tanh":
        inner = _INNER * (x + _CUBIC * x**3)
        growth: Tensor | float = _INNER * (1 + 3 * _CUBIC * x.square())
    else:
        inner, growth = _QUICK * x, _QUICK
    gate = torch.sigmoid(inner)
    rise = growth * gate * torch.sigmoid(-inner)
    return x * gate, gate + x * rise


def gelu(x: Tensor, formula: str) -> Tensor:
    """Return f(x), differentiable once; value and gradient rounded once to the dtype of x."""
    result: Tensor = _Exact.apply(x, formula)
    return result


class _Exact(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, formula: str) -> Tensor:
        value, slope = value_and_slope(x.double(), formula)
        ctx.save_for_backward(slope)
        return value.to(x.dtype)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None]:
        (slope,) = ctx.saved_tensors
        return (gradients[0].double() * slope).to(gradients[0].dtype), None
