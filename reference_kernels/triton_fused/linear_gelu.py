"""linear_gelu: one kernel forward; backward one elementwise kernel and two matrix products.

The products of the backward have no epilogue to fuse; they are cuBLAS's where its sums are as exact
as ours (`matmul.product`).

The backward needs the pre-activation z. It is saved, rounded to the format of x, and only where a
gradient is asked for: that costs one store of (M, N), where recomputing costs a third of the
backward's matrix products again. In fp32 nothing is lost; in 16 bits z is rounded once, as eager
mode rounds it before the activation, and the output itself is computed from the unrounded z.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from . import launch
from .matmul import fp32_partial_sums, matmul, product
from .rowwise import bias_gelu_backward


def linear_gelu(x: Tensor, weight: Tensor, bias: Tensor, formula: str = "erf") -> Tensor:
    """Return f(x·weightᵀ + bias): x (..., K), weight (N, K), bias (N,), any strides.

    fp32 sums (no TF32), one rounding at the end. Raises for other shapes, dtypes, formulas.
    """
    launch.require(formula, x=x, weight=weight, bias=bias)
    launch.require_shape("weight", weight, (*bias.shape, *x.shape[-1:]))
    # Under no_grad parameters still want a gradient, but none will be asked for.
    save = torch.is_grad_enabled() and any(part.requires_grad for part in (x, weight, bias))
    return _LinearGelu.apply(x, weight, bias, formula, save)


class _LinearGelu(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, x: Tensor, weight: Tensor, bias: Tensor, formula: str, save: bool
    ) -> Tensor:
        out, pre = matmul(launch.rows(x), weight.t(), bias, formula, save_pre=save)
        if save:
            ctx.save_for_backward(x, weight, pre)
        ctx.formula = formula
        return out.reshape(*x.shape[:-1], weight.shape[0])

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, dy: Tensor) -> tuple[Tensor | None, Tensor | None, Tensor, None, None]:
        x, weight, pre = ctx.saved_tensors
        g, sums = bias_gelu_backward(launch.rows(dy), pre, None, ctx.formula)
        dx = dweight = None
        with fp32_partial_sums(g.dtype):
            if ctx.needs_input_grad[0]:
                dx = product(g, weight)
                dx = dx if x.dim() == 2 else dx.reshape(x.shape)
            if ctx.needs_input_grad[1]:
                dweight = product(g.t(), launch.rows(x))
        return dx, dweight, sums.to(x.dtype), None, None
