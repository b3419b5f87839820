"""attention: host function and gradient. Saved: the inputs, the result, log Σ exp of each row."""

from __future__ import annotations

import math
from typing import Any

import torch
import triton
from torch import Tensor
from torch.autograd.function import once_differentiable

from . import attention_kernels, launch

#: (BLOCK_M, BLOCK_N, warps, stages) by bytes an element and width of the heads: what fits into
#: registers and shared memory. A product of fp32 runs without tensor cores, unrolled.
_TILES = {
    2: {64: (64, 64, 4, 3), 128: (64, 64, 8, 2), 256: (64, 32, 8, 2)},
    4: {64: (32, 32, 4, 2), 128: (32, 32, 8, 2), 256: (16, 32, 8, 1)},
}
_INTERPRETER_BLOCK = 128
_WIDEST = 256


def attention(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Return softmax(q·kᵀ/√D)·v: q (..., L, D), k (..., S, D), v (..., S, E), any strides.

    Probabilities are rounded to the format before they meet v, as on tensor cores. A row whose
    scores are all -inf gives NaN, as torch's does. Raises for other shapes and dtypes, or D > 256.
    """
    launch.require("erf", q=q, k=k, v=v)
    launch.require_shape("k", k, (*q.shape[:-2], *k.shape[-2:-1], q.shape[-1]))
    launch.require_shape("v", v, (*k.shape[:-1], v.shape[-1]))
    if max(q.shape[-1], v.shape[-1]) > _WIDEST:
        raise ValueError(
            f"q, v: got {q.shape[-1]} and {v.shape[-1]} columns, expected at most {_WIDEST}. "
            "Split the heads."
        )
    return _Attention.apply(q, k, v)


def _heads(tensor: Tensor) -> Tensor:
    """View (..., L, D) as (B, H, L, D); only more than two leading dimensions may be copied."""
    lead = tensor.shape[:-2]
    if len(lead) > 2:
        return tensor.reshape(lead[:-1].numel(), *tensor.shape[-3:])
    return tensor[(None,) * (2 - len(lead))]


def _tile(q: Tensor, k: Tensor, v: Tensor) -> dict[str, int]:
    wide_q, wide_v = (launch.block(part.shape[-1], _WIDEST) for part in (q, v))
    m, n, warps, stages = _TILES[q.element_size()][max(wide_q, wide_v, 64)]
    if launch.INTERPRETED:
        m = launch.block(q.shape[-2], _INTERPRETER_BLOCK)
        n = launch.block(k.shape[-2], _INTERPRETER_BLOCK)
    return {
        "BLOCK_D": wide_q,
        "BLOCK_E": wide_v,
        "BLOCK_M": m,
        "BLOCK_N": n,
        "num_warps": warps,
        "num_stages": stages,
    }


def _sizes(q: Tensor, k: Tensor, v: Tensor) -> tuple[float, int, int, int, int, int]:
    """Give scale, H, L, S, D, E."""
    width = q.shape[-1]
    scale = 1 / math.sqrt(max(width, 1))
    return scale, q.shape[1], q.shape[-2], k.shape[-2], width, v.shape[-1]


class _Attention(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        out = torch.empty((*q.shape[:-1], v.shape[-1]), dtype=q.dtype, device=q.device)
        level = torch.empty(q.shape[:-1], dtype=torch.float32, device=q.device)
        views = [_heads(part) for part in (q, k, v)]
        tile = _tile(*views)
        if out.numel():
            launch.run(
                attention_kernels.attention_kernel,
                (triton.cdiv(q.shape[-2], tile["BLOCK_M"]) * q.shape[:-2].numel(),),
                *(launch.stored(part) for part in (*views, out)),
                *(level, *_sizes(*views)),
                *(step for part in views for step in part.stride()),
                **tile,
            )
        ctx.save_for_backward(q, k, v, out, level)
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, dy: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        q, k, v, out, level = ctx.saved_tensors
        dq, dk, dv = (torch.zeros(part.shape, dtype=q.dtype, device=q.device) for part in (q, k, v))
        if not out.numel():
            return dq, dk, dv
        views = [_heads(part) for part in (dy, q, k, v)]
        tile = _tile(*views[1:])
        heads = q.shape[:-2].numel()
        along = torch.empty_like(level)
        sizes = _sizes(*views[1:])
        strides = [step for part in views for step in part.stride()]
        inputs = [launch.stored(part) for part in views]
        launch.run(
            attention_kernels.attention_query_gradient_kernel,
            (triton.cdiv(q.shape[-2], tile["BLOCK_M"]) * heads,),
            *(*inputs, launch.stored(out), level, along, launch.stored(dq)),
            *(*sizes, *strides),
            **tile,
        )
        if k.shape[-2]:
            launch.run(
                attention_kernels.attention_key_gradient_kernel,
                (triton.cdiv(k.shape[-2], tile["BLOCK_N"]) * heads,),
                *(*inputs, level, along, launch.stored(dk), launch.stored(dv)),
                *(*sizes, *strides),
                **tile,
            )
        return dq, dk, dv
