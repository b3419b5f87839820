"""The fused operators in float64, as autograd sees them: what stands at a site for the truth."""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn import functional

from gelu_verify.operators.fused.layernorm_gelu import EPSILON


def gelu(x: Tensor, formula: str) -> Tensor:
    """Return f(x): ``x·erfc(-x/√2)/2``, ``x·σ(2√(2/π)(x + 0.044715x³))`` or ``x·σ(1.702x)``."""
    if formula == "erf":
        return x * torch.special.erfc(-x * math.sqrt(0.5)) / 2
    inner = 1.702 * x
    if formula == "tanh":
        inner = 2 * math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)
    return x * torch.sigmoid(inner)


def linear_gelu(x: Tensor, weight: Tensor, bias: Tensor, formula: str) -> Tensor:
    """Return f(x·weightᵀ + bias)."""
    return gelu(functional.linear(x, weight, bias), formula)


def bias_gelu(x: Tensor, bias: Tensor, formula: str) -> Tensor:
    """Return f(x + bias)."""
    return gelu(x + bias, formula)


def layernorm_gelu(x: Tensor, weight: Tensor, bias: Tensor, formula: str) -> Tensor:
    """Return f(layer_norm(x)·weight + bias)."""
    normed = functional.layer_norm(x, x.shape[-1:], weight, bias, float(EPSILON))
    return gelu(normed, formula)


FUNCTIONS: dict[str, Callable[..., Tensor]] = {
    "linear_gelu": linear_gelu,
    "bias_gelu": bias_gelu,
    "layernorm_gelu": layernorm_gelu,
}
