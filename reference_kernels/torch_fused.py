"""torch's own routes to the fused operators, in eager mode."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional


def linear_gelu(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """Return ``gelu(linear(x, weight, bias))``: two kernels."""
    return functional.gelu(functional.linear(x, weight, bias))


def linear_gelu_tanh(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """Return ``gelu(linear(x, weight, bias), approximate="tanh")``: two kernels."""
    return functional.gelu(functional.linear(x, weight, bias), approximate="tanh")


def linear_gelu_epilogue(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """Return ``torch._addmm_activation(..., use_gelu=True)``: one kernel on CUDA.

    It computes the erf formula on a CPU and the tanh formula on CUDA.
    """
    rows = x.reshape(-1, x.shape[-1])
    result = torch._addmm_activation(bias, rows, weight.t(), use_gelu=True)
    return result.reshape(*x.shape[:-1], weight.shape[0])
