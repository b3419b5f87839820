"""The Triton kernels behind :mod:`gelu_verify.kernels.canary`; importing this imports Triton."""

from __future__ import annotations

from typing import Any

import torch
import triton
import triton.language as tl

_BLOCK = 8


@triton.jit
def _copy_kernel(x_ptr, out_ptr, count, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    tl.store(out_ptr + at, tl.load(x_ptr + at, mask=at < count), mask=at < count)


@triton.jit
def _multiply_add_kernel(x_ptr, y_ptr, out_ptr, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    y = tl.load(y_ptr + at)
    tl.store(out_ptr + at, tl.load(x_ptr + at) * y + y)


@triton.jit
def _keep_if_equal_kernel(x_ptr, out_ptr, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at)
    tl.store(out_ptr + at, tl.where(x == x, x, 0.0))


@triton.jit
def _shift_kernel(x_ptr, out_ptr, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at).to(tl.uint32, bitcast=True)
    tl.store(out_ptr + at, (x >> 16).to(tl.int32, bitcast=True))


@triton.jit
def _widen_kernel(x_ptr, out_ptr, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    tl.store(out_ptr + at, tl.load(x_ptr + at).to(tl.float32))


@triton.jit
def _narrow_kernel(x_ptr, out_ptr, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    tl.store(out_ptr + at, tl.load(x_ptr + at).to(tl.bfloat16))


def _launch(kernel: Any, out: torch.Tensor, *arguments: Any) -> torch.Tensor | None:
    """Run a kernel; None if the interpreter raises, which is a wrong answer too."""
    try:
        kernel[(1,)](*arguments, BLOCK=_BLOCK)
    except Exception:  # an interpreter fault of any kind is the finding
        return None
    return out


def copy(x: torch.Tensor) -> torch.Tensor | None:
    """Return a copy of up to 8 values, through a masked load and store."""
    out = torch.full_like(x, 7.0)
    return _launch(_copy_kernel, out, x, out, x.numel())


def multiply_add(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor | None:
    """Return ``x·y + y``, each operation rounded."""
    out = torch.empty_like(x)
    return _launch(_multiply_add_kernel, out, x, y, out)


def keep_if_equal(x: torch.Tensor) -> torch.Tensor | None:
    """Return x where it equals itself, else 0: NaN becomes 0."""
    out = torch.empty_like(x)
    return _launch(_keep_if_equal_kernel, out, x, out)


def shift(bits: torch.Tensor) -> torch.Tensor | None:
    """Return int32 patterns shifted right by 16 as unsigned numbers."""
    out = torch.empty_like(bits)
    return _launch(_shift_kernel, out, bits, out)


def widen(x: torch.Tensor) -> torch.Tensor | None:
    """Return bf16 values as fp32."""
    out = torch.empty(x.shape, dtype=torch.float32)
    return _launch(_widen_kernel, out, x, out)


def narrow(x: torch.Tensor) -> torch.Tensor | None:
    """Return fp32 values as bf16."""
    out = torch.empty(x.shape, dtype=torch.bfloat16)
    return _launch(_narrow_kernel, out, x, out)
