"""Fakes and gradients of the operators, registered when the library is loaded.

The fakes give shapes, dtypes and memory orders to tracing; the gradients call operators, so that
tracing goes through them too, and have gradients of their own.
"""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

_NAMESPACE = "gelu_verify_kernels"
_ops = torch.ops.gelu_verify_kernels
#: Gradients for x, weight and bias, None for those that want none.
_OfLinear = tuple[Tensor | None, Tensor | None, Tensor | None]


@torch.library.register_fake(f"{_NAMESPACE}::gelu_erf")
def _fake_gelu_erf(x: Tensor) -> Tensor:
    return torch.empty_like(x)


@torch.library.register_fake(f"{_NAMESPACE}::gelu_erf_backward")
def _fake_gelu_erf_backward(dy: Tensor, x: Tensor) -> Tensor:
    return torch.empty_like(x)


@torch.library.register_fake(f"{_NAMESPACE}::linear_gelu")
def _fake_linear_gelu(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    return x.new_empty((*x.shape[:-1], weight.shape[0]))


@torch.library.register_fake(f"{_NAMESPACE}::linear_gelu_slope")
def _fake_linear_gelu_slope(dy: Tensor, x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    return x.new_empty((*x.shape[:-1], weight.shape[0]), dtype=torch.float32)


def _save_inputs(ctx: Any, inputs: tuple[Tensor, ...], output: Tensor) -> None:
    ctx.save_for_backward(*inputs)


def _backward_of_gelu_erf(ctx: Any, dy: Tensor) -> Tensor:
    """Return dy·GELU'(x)."""
    (x,) = ctx.saved_tensors
    return _ops.gelu_erf_backward(dy, x)


def _backward_of_gelu_erf_backward(ctx: Any, g: Tensor) -> tuple[Tensor | None, Tensor | None]:
    """Return the gradients of dy·GELU'(x): g·GELU'(x) for dy, g·dy·GELU''(x) for x."""
    dy, x = ctx.saved_tensors
    of_dy = _ops.gelu_erf_backward(g, x) if ctx.needs_input_grad[0] else None
    of_x = _times_curvature(g, dy, x).to(x.dtype) if ctx.needs_input_grad[1] else None
    return of_dy, of_x


def _backward_of_linear_gelu(ctx: Any, dy: Tensor) -> _OfLinear:
    """Return the gradients through dz = dy·GELU'(z), which is in fp32."""
    x, weight, bias = ctx.saved_tensors
    dz = _ops.linear_gelu_slope(dy, x, weight, bias)
    return _through_product(dz, x, weight, ctx.needs_input_grad)


def _backward_of_linear_gelu_slope(ctx: Any, g: Tensor) -> tuple[Tensor | None, *_OfLinear]:
    """Return the gradients of dy·GELU'(z): g·GELU'(z) for dy, and those through g·dy·GELU''(z)."""
    dy, x, weight, bias = ctx.saved_tensors
    z = torch.nn.functional.linear(x.float(), weight.float(), bias.float())
    of_dy = _ops.gelu_erf_backward(g, z).to(dy.dtype) if ctx.needs_input_grad[0] else None
    dz = _times_curvature(g, dy, z)
    return of_dy, *_through_product(dz, x, weight, ctx.needs_input_grad[1:])


def _times_curvature(g: Tensor, dy: Tensor, x: Tensor) -> Tensor:
    """Return g·dy·GELU''(x), GELU''(x) = φ(x)(2 - x²), in fp32 at least."""
    wide = torch.promote_types(x.dtype, torch.float32)
    # φ is 0 in fp64 from 39 on: bounded, so that 0·∞ does not occur.
    square = x.to(wide).clamp(-40.0, 40.0).square()
    curvature = (2.0 - square) * torch.exp(-0.5 * square) / math.sqrt(2.0 * math.pi)
    return g.to(wide) * dy.to(wide) * curvature


def _through_product(dz: Tensor, x: Tensor, weight: Tensor, needed: tuple[bool, ...]) -> _OfLinear:
    """Return dx = dz·weight, dweight = dzᵀ·x, dbias = Σ dz for z = x·weightᵀ + bias.

    dz: (..., N) in fp32. fp32 products of unrounded factors, rounded to the format once.
    """
    count = math.prod(x.shape[:-1])  # not left to torch, which cannot tell it where a size is 0
    rows = dz.reshape(count, weight.shape[0])
    dx = dweight = dbias = None
    if needed[0]:
        dx = (dz @ weight.float()).to(x.dtype)
    if needed[1]:
        dweight = (rows.t() @ x.reshape(count, x.shape[-1]).float()).to(x.dtype)
    if needed[2]:
        dbias = rows.sum(0).to(x.dtype)
    return dx, dweight, dbias


for _name, _backward in (
    ("gelu_erf", _backward_of_gelu_erf),
    ("gelu_erf_backward", _backward_of_gelu_erf_backward),
    ("linear_gelu", _backward_of_linear_gelu),
    ("linear_gelu_slope", _backward_of_linear_gelu_slope),
):
    torch.library.register_autograd(f"{_NAMESPACE}::{_name}", _backward, setup_context=_save_inputs)
