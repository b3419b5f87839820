"""Load, apply, store: one kernel a function over `count` elements that lie one after another.

fp32 and fp16 are loaded as they are; bf16 comes as int16 bits. Triton's CPU interpreter does bf16
arithmetic wrongly, truncates fp32 to bf16 and mistakes bf16 subnormals, so widening (a shift) and
rounding (RNE by integers) are written out, and compiled code does the same steps.
"""

import triton
import triton.language as tl

from . import math


@triton.jit
def _widen(stored):
    """fp32 of a loaded fp32, fp16 or bf16 (as int16 bits) value; exact."""
    if stored.dtype == tl.int16:
        wide = (stored.to(tl.int32) << 16).to(tl.float32, bitcast=True)
    else:
        wide = stored.to(tl.float32)
    return wide


@triton.jit
def _narrow(value, dtype: tl.constexpr):
    """Round fp32 to nearest even, once, in the storage type `dtype` (int16: the bits of bf16)."""
    if dtype == tl.int16:
        bits = value.to(tl.int32, bitcast=True)
        rounded = (bits + 0x7FFF + ((bits >> 16) & 1)) >> 16
        # A NaN may carry into infinity or the sign bit; keep its sign, make it quiet.
        quiet = (bits >> 16) | 0x40
        stored = tl.where((bits & 0x7FFFFFFF) <= 0x7F800000, rounded, quiet).to(tl.int16)
    else:
        stored = value.to(dtype)
    return stored


@triton.jit
def _load(ptr, offsets, count):
    """Widen the elements at `offsets`; 0 where an offset is past the end."""
    return _widen(tl.load(ptr + offsets, mask=offsets < count, other=0))


@triton.jit
def _store(ptr, offsets, count, value):
    """Round to the format of `ptr` and store where the offset is not past the end."""
    tl.store(ptr + offsets, _narrow(value, ptr.dtype.element_ty), mask=offsets < count)


@triton.jit
def _offsets(BLOCK: tl.constexpr):
    """Give the elements of one program, in 64 bits: tensors may exceed 2^31 elements."""
    return tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)


@triton.jit
def gelu_erf_kernel(x_ptr, out_ptr, count, BLOCK: tl.constexpr):
    """Store x·Φ(x)."""
    offsets = _offsets(BLOCK)
    _store(out_ptr, offsets, count, math.gelu_erf(_load(x_ptr, offsets, count)))


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
