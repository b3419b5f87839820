"""Load, apply, store: one kernel a function over `count` elements that lie one after another.

fp32 and fp16 are loaded as they are; bf16 comes as int16 bits, see `storage.py`.
"""

import triton
import triton.language as tl

from . import math, storage


@triton.jit
def _load(ptr, offsets, count):
    """Widen the elements at `offsets`; 0 where an offset is past the end."""
    return storage.widen(tl.load(ptr + offsets, mask=offsets < count, other=0))


@triton.jit
def _store(ptr, offsets, count, value):
    """Round to the format of `ptr` and store where the offset is not past the end."""
    tl.store(ptr + offsets, storage.narrow(value, ptr.dtype.element_ty), mask=offsets < count)


@triton.jit
def _offsets(BLOCK: tl.constexpr):
    """Give the elements of one program, in 64 bits: tensors may exceed 2^31 elements."""
    return tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)


@triton.jit
def gelu_erf_kernel(x_ptr, out_ptr, count, BLOCK: tl.constexpr):
    """Store x·Φ(x)."""
    offsets = _offsets(BLOCK)
    x = _load(x_ptr, offsets, count)
    if out_ptr.dtype.element_ty == tl.float32:
        y = math.gelu_erf(x)
    else:
        y = math.gelu_erf_short(x)
    _store(out_ptr, offsets, count, y)


@triton.jit
def gelu_erf_guarded_kernel(x_ptr, out_ptr, count, BLOCK: tl.constexpr):
    """Store x·Φ(x), or 0 or x beyond ±6."""
    offsets = _offsets(BLOCK)
    _store(out_ptr, offsets, count, math.gelu_erf_guarded(_load(x_ptr, offsets, count)))


@triton.jit
def gelu_tanh_kernel(x_ptr, out_ptr, count, BLOCK: tl.constexpr):
    """Store the tanh form of GELU."""
    offsets = _offsets(BLOCK)
    _store(out_ptr, offsets, count, math.gelu_tanh(_load(x_ptr, offsets, count)))


@triton.jit
def gelu_sigmoid_kernel(x_ptr, out_ptr, count, BLOCK: tl.constexpr):
    """Store x·σ(1.702x)."""
    offsets = _offsets(BLOCK)
    _store(out_ptr, offsets, count, math.gelu_sigmoid(_load(x_ptr, offsets, count)))


@triton.jit
def gelu_erf_backward_kernel(dy_ptr, x_ptr, out_ptr, count, BLOCK: tl.constexpr):
    """Store dy·(Φ(x) + xφ(x))."""
    offsets = _offsets(BLOCK)
    dy = _load(dy_ptr, offsets, count)
    _store(out_ptr, offsets, count, math.gelu_erf_backward(dy, _load(x_ptr, offsets, count)))


@triton.jit
def gelu_tanh_backward_kernel(dy_ptr, x_ptr, out_ptr, count, BLOCK: tl.constexpr):
    """Store dy·GELU'(x) of the tanh form."""
    offsets = _offsets(BLOCK)
    dy = _load(dy_ptr, offsets, count)
    _store(out_ptr, offsets, count, math.gelu_tanh_backward(dy, _load(x_ptr, offsets, count)))


@triton.jit
def gelu_sigmoid_backward_kernel(dy_ptr, x_ptr, out_ptr, count, BLOCK: tl.constexpr):
    """Store dy·GELU'(x) of x·σ(1.702x)."""
    offsets = _offsets(BLOCK)
    dy = _load(dy_ptr, offsets, count)
    _store(out_ptr, offsets, count, math.gelu_sigmoid_backward(dy, _load(x_ptr, offsets, count)))
