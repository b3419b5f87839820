"""From stored elements to fp32 and back, the same in compiled code and in Triton's interpreter.

The interpreter does bf16 arithmetic wrongly, truncates fp32 to bf16 and mistakes bf16 subnormals.
There bf16 comes as int16 bits, and widening (a shift) and rounding (RNE by integers) are written
out. A GPU has an instruction for the rounding.
"""

import triton
import triton.language as tl

INTERPRETED = tl.constexpr(triton.knobs.runtime.interpret)


@triton.jit
def widen(stored):
    """fp32 of a loaded fp32, fp16, bf16 or bf16-as-int16-bits value; exact."""
    if stored.dtype == tl.int16:
        wide = (stored.to(tl.int32) << 16).to(tl.float32, bitcast=True)
    else:
        wide = stored.to(tl.float32)
    return wide


@triton.jit
def narrow(value, dtype: tl.constexpr):
    """Round fp32 to nearest even, once, in the storage type `dtype` (int16: the bits of bf16)."""
    if dtype == tl.int16 and not INTERPRETED:
        stored = value.to(tl.bfloat16).to(tl.int16, bitcast=True)
    elif dtype == tl.int16:
        bits = value.to(tl.int32, bitcast=True)
        rounded = (bits + 0x7FFF + ((bits >> 16) & 1)) >> 16
        # A NaN may carry into infinity or the sign bit; keep its sign, make it quiet.
        quiet = (bits >> 16) | 0x40
        stored = tl.where((bits & 0x7FFFFFFF) <= 0x7F800000, rounded, quiet).to(tl.int16)
    else:
        stored = value.to(dtype)
    return stored


@triton.jit
def factor(stored):
    """Give a loaded value as a matrix product takes it: itself, or fp32 of bf16 bits."""
    if stored.dtype == tl.int16:
        taken = widen(stored)
    else:
        taken = stored
    return taken


@triton.jit
def rounded_factor(value, dtype: tl.constexpr):
    """Round fp32 to the storage type, as a matrix product takes it."""
    return factor(narrow(value, dtype))
