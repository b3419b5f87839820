"""Fakes and gradients of the operators, registered when the library is loaded.

The fakes give shapes, dtypes and memory orders to tracing; the gradients call operators, so that
tracing goes through them too. No gradient can be differentiated again: torch says so.
"""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

_NAMESPACE = "gelu_verify_kernels"
_ops = torch.ops.gelu_verify_kernels


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


def _backward_of_linear_gelu(
    ctx: Any, dy: Tensor
) -> tuple[Tensor | None, Tensor | None, Tensor | None]:
    """Return the gradients of those that want one, from dz = dy·GELU'(z) in fp32.

    dx = dz·weight, dweight = dzᵀ·x, dbias = Σ dz: fp32 products of unrounded factors, rounded to
    the format once.
    """
    x, weight, bias = ctx.saved_tensors
    dz = _ops.linear_gelu_slope(dy, x, weight, bias)
    count = math.prod(x.shape[:-1])  # not left to torch, which cannot tell it where a size is 0
    rows = dz.reshape(count, weight.shape[0])
    dx = dweight = dbias = None
    if ctx.needs_input_grad[0]:
        dx = (dz @ weight.float()).to(x.dtype)
    if ctx.needs_input_grad[1]:
        dweight = (rows.t() @ x.reshape(count, x.shape[-1]).float()).to(x.dtype)
    if ctx.needs_input_grad[2]:
        dbias = rows.sum(0).to(x.dtype)
    return dx, dweight, dbias


torch.library.register_autograd(
    f"{_NAMESPACE}::gelu_erf", _backward_of_gelu_erf, setup_context=_save_inputs
)
torch.library.register_autograd(
    f"{_NAMESPACE}::linear_gelu", _backward_of_linear_gelu, setup_context=_save_inputs
)
