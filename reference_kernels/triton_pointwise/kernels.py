"""Load, apply, store: one kernel a function over `count` elements that lie one after another.

fp32 and fp16 are loaded as they are; bf16 comes as int16 bits, see `storage.py`.
"""

import triton
import triton.language as tl

from . import math, storage


@triton.jit
def _first(BLOCK: tl.constexpr):
    """Give the first element of a program, in 64 bits: tensors may exceed 2^31 elements."""
    return tl.program_id(0).to(tl.int64) * BLOCK


@triton.jit
def _load(ptr, offsets, count, MASKED: tl.constexpr):
    """Widen the elements at `offsets`; 0 where an offset is past the end."""
    if MASKED:
        stored = tl.load(ptr + offsets, mask=offsets < count, other=0)
    else:
        stored = tl.load(ptr + offsets)
    return storage.widen(stored)


@triton.jit
def _store(ptr, offsets, count, value, MASKED: tl.constexpr):
    """Round to the format of `ptr` and store where the offset is not past the end."""
    stored = storage.narrow(value, ptr.dtype.element_ty)
    if MASKED:
        tl.store(ptr + offsets, stored, mask=offsets < count)
    else:
        tl.store(ptr + offsets, stored)


@triton.jit
def _one(x_ptr, out_ptr, offsets, count, FUNCTION: tl.constexpr, MASKED: tl.constexpr):
    _store(out_ptr, offsets, count, FUNCTION(_load(x_ptr, offsets, count, MASKED)), MASKED)


@triton.jit
def _two(dy_ptr, x_ptr, out_ptr, offsets, count, FUNCTION: tl.constexpr, MASKED: tl.constexpr):
    dy = _load(dy_ptr, offsets, count, MASKED)
    value = FUNCTION(dy, _load(x_ptr, offsets, count, MASKED))
    _store(out_ptr, offsets, count, value, MASKED)


@triton.jit
def _map(x_ptr, out_ptr, count, FUNCTION: tl.constexpr, BLOCK: tl.constexpr):
    """Store FUNCTION(x). Only the last program is masked: a mask splits vector loads."""
    first = _first(BLOCK)
    offsets = first + tl.arange(0, BLOCK)
    if first + BLOCK <= count:
        _one(x_ptr, out_ptr, offsets, count, FUNCTION, False)
    else:
        _one(x_ptr, out_ptr, offsets, count, FUNCTION, True)


@triton.jit
def _map_pair(dy_ptr, x_ptr, out_ptr, count, FUNCTION: tl.constexpr, BLOCK: tl.constexpr):
    """Store FUNCTION(dy, x), likewise."""
    first = _first(BLOCK)
    offsets = first + tl.arange(0, BLOCK)
    if first + BLOCK <= count:
        _two(dy_ptr, x_ptr, out_ptr, offsets, count, FUNCTION, False)
    else:
        _two(dy_ptr, x_ptr, out_ptr, offsets, count, FUNCTION, True)


@triton.jit
def gelu_erf_kernel(x_ptr, out_ptr, count, BLOCK: tl.constexpr):
    """Store x·Φ(x)."""
    if out_ptr.dtype.element_ty == tl.float32:
        _map(x_ptr, out_ptr, count, math.gelu_erf, BLOCK)
    else:
        _map(x_ptr, out_ptr, count, math.gelu_erf_short, BLOCK)


@triton.jit
def gelu_erf_guarded_kernel(x_ptr, out_ptr, count, BLOCK: tl.constexpr):
    """Store x·Φ(x), or 0 or x beyond ±6."""
    _map(x_ptr, out_ptr, count, math.gelu_erf_guarded, BLOCK)


@triton.jit
def gelu_tanh_kernel(x_ptr, out_ptr, count, BLOCK: tl.constexpr):
    """Store the tanh form of GELU."""
    _map(x_ptr, out_ptr, count, math.gelu_tanh, BLOCK)


@triton.jit
def gelu_sigmoid_kernel(x_ptr, out_ptr, count, BLOCK: tl.constexpr):
    """Store x·σ(1.702x)."""
    _map(x_ptr, out_ptr, count, math.gelu_sigmoid, BLOCK)


@triton.jit
def gelu_erf_backward_kernel(dy_ptr, x_ptr, out_ptr, count, BLOCK: tl.constexpr):
    """Store dy·(Φ(x) + xφ(x))."""
    _map_pair(dy_ptr, x_ptr, out_ptr, count, math.gelu_erf_backward, BLOCK)


@triton.jit
def gelu_tanh_backward_kernel(dy_ptr, x_ptr, out_ptr, count, BLOCK: tl.constexpr):
    """Store dy·GELU'(x) of the tanh form."""
    _map_pair(dy_ptr, x_ptr, out_ptr, count, math.gelu_tanh_backward, BLOCK)


@triton.jit
def gelu_sigmoid_backward_kernel(dy_ptr, x_ptr, out_ptr, count, BLOCK: tl.constexpr):
    """Store dy·GELU'(x) of x·σ(1.702x)."""
    _map_pair(dy_ptr, x_ptr, out_ptr, count, math.gelu_sigmoid_backward, BLOCK)
