"""Triton kernels whose launch or mask is wrong: a quick GELU in blocks of 4096."""

from __future__ import annotations

from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

from gelu_verify.selftest.entry import Kind, defect

_BLOCK = 4096


@triton.jit
def _unmasked_store_kernel(x_ptr, out_ptr, count, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at, mask=at < count, other=0.0)
    tl.store(out_ptr + at, x / (1.0 + tl.exp(-1.702 * x)))


@triton.jit
def _masked_kernel(x_ptr, out_ptr, count, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at, mask=at < count, other=0.0)
    tl.store(out_ptr + at, x / (1.0 + tl.exp(-1.702 * x)), mask=at < count)


@triton.jit
def _off_by_one_kernel(x_ptr, out_ptr, count, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at, mask=at < count - 1, other=0.0)
    tl.store(out_ptr + at, x / (1.0 + tl.exp(-1.702 * x)), mask=at < count)


def _launched(kernel: Any, x: Tensor, blocks: int) -> Tensor:
    if x.dtype != torch.float32:
        raise TypeError(f"x: got {x.dtype}, expected float32.")
    x = x.contiguous()
    out = torch.empty_like(x)
    if blocks:
        kernel[(blocks,)](x, out, x.numel(), BLOCK=_BLOCK)
    return out


@defect(
    Kind.SHAPE,
    report="triton-lang/triton#630",
    formula="sigmoid",
    formats=("fp32",),
    rejected_by={"memory": "written outside"},
    unseen_because="its size is a multiple of the block",
    harmful=True,
)
def store_without_a_mask(x: Tensor) -> Tensor:
    """The load is masked, the store is not: the last block writes behind the result."""
    return _launched(_unmasked_store_kernel, x, triton.cdiv(x.numel(), _BLOCK))


@defect(
    Kind.SHAPE,
    report="triton-lang/triton#630",
    formula="sigmoid",
    formats=("fp32",),
    rejected_by={"memory": "never written"},
    unseen_because="its size is a multiple of the block",
)
def grid_rounded_down(x: Tensor) -> Tensor:
    """numel // BLOCK programs: the last, partial block is not launched."""
    return _launched(_masked_kernel, x, x.numel() // _BLOCK)


@defect(
    Kind.SHAPE,
    report="tenstorrent/tt-metal#16272",
    formula="sigmoid",
    formats=("fp32",),
    rejected_by={"special_values": "length 1"},
)
def last_element_masked_off(x: Tensor) -> Tensor:
    """The mask of the load ends one element early: the last result is f(0)."""
    return _launched(_off_by_one_kernel, x, triton.cdiv(x.numel(), _BLOCK))
