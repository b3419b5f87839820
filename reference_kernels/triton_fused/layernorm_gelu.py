"""layernorm_gelu: host function and gradient; a row's moments are saved, the rest recomputed."""

from __future__ import annotations

from typing import Any

import torch
import triton
from torch import Tensor
from torch.autograd.function import once_differentiable

from . import launch, layernorm_kernels

_EPSILON = 1e-5
_TILE = (8, 512)


def layernorm_gelu(x: Tensor, weight: Tensor, bias: Tensor, formula: str = "erf") -> Tensor:
    """Return f(layer_norm(x)·weight + bias) over the last dimension, eps 1e-5, rounded once.

    x (..., N), weight and bias (N,), any strides. Raises for other shapes, dtypes, formulas.
    """
    launch.require(formula, x=x, weight=weight, bias=bias)
    launch.require_shape("weight", weight, tuple(x.shape[-1:]))
    launch.require_shape("bias", bias, tuple(x.shape[-1:]))
    return _LayernormGelu.apply(x, weight, bias, formula)


def _tile(m: int, n: int) -> dict[str, int]:
    most_m, most_n = (256, 1024) if launch.INTERPRETED else _TILE
    return {"BLOCK_M": launch.block(m, most_m, 1), "BLOCK_N": launch.block(n, most_n)}


class _LayernormGelu(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor, formula: str) -> Tensor:
        rows = launch.rows(x)
        out = torch.empty(x.shape, dtype=x.dtype, device=x.device)
        moments = torch.empty((3, rows.shape[0]), dtype=torch.float32, device=x.device)
        if out.numel():
            tile = _tile(*rows.shape)
            launch.run(
                layernorm_kernels.layernorm_gelu_kernel,
                (triton.cdiv(rows.shape[0], tile["BLOCK_M"]),),
                *(launch.stored(part) for part in (rows, weight, bias, out)),
                *(moments, *rows.shape, *rows.stride(), weight.stride(0), bias.stride(0)),
                _EPSILON,
                FORMULA=formula,
                FAST=launch.is_fast(x),
                **tile,
            )
        ctx.save_for_backward(x, weight, bias, moments)
        ctx.formula = formula
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, dy: Tensor) -> tuple[Tensor, Tensor, Tensor, None]:
        x, weight, bias, moments = ctx.saved_tensors
        rows, grad = launch.rows(x), launch.rows(dy)
        m, n = rows.shape
        dx = torch.empty(x.shape, dtype=x.dtype, device=x.device)
        tile = _tile(m, n)
        programs = triton.cdiv(m, tile["BLOCK_M"])
        sums = torch.empty((programs, 2, n), dtype=torch.float32, device=x.device)
        if dx.numel():
            launch.run(
                layernorm_kernels.layernorm_gelu_backward_kernel,
                (programs,),
                *(launch.stored(part) for part in (grad, rows, weight, bias)),
                *(moments, launch.stored(dx), sums, m, n, *grad.stride(), *rows.stride()),
                *(weight.stride(0), bias.stride(0)),
                FORMULA=ctx.formula,
                FAST=launch.is_fast(x),
                **tile,
            )
        dweight, dbias = sums.sum(0).to(x.dtype)
        return dx, dweight, dbias, None
