"""e^-y as a pair high + low and a power of two, without a fused multiply-add."""

import triton
import triton.language as tl

from .bits import leading_12_bits, negated

# Adding and subtracting 1.5·2^23 rounds to an integer.
TO_INTEGER = tl.constexpr(12582912.0)
INTEGER_BITS = tl.constexpr(0x4B400000)  # the bits of TO_INTEGER; the integer is added to them

# ln 2 = 15 bits + rest, so that n·LN2_HI is exact for n < 512.
LN2_HI = tl.constexpr(0.69314575)
LN2_LO = tl.constexpr(1.4286068e-06)
LOG2E = tl.constexpr(1.442695)


@triton.jit
def exp_of_minus(y_hi, y_lo):
    """(e_hi, e_lo, n) with e^-(y_hi + y_lo) = (e_hi + e_lo)·2^-n, e_hi of 12 bits.

    y_hi is a multiple of 2^-17 below 256, so neither taking n·ln 2 off it nor adding 1 rounds.
    e^r = 1 + r + r²q(r), |r| < 0.35, of degree 6: error 2^-27.9.
    """
    shifted = tl.fma(y_hi + y_lo, LOG2E, TO_INTEGER)
    n = shifted - TO_INTEGER
    r_hi = tl.fma(n, LN2_HI, negated(y_hi))
    r_lo = tl.fma(n, LN2_LO, negated(y_lo))
    r = r_hi + r_lo
    q = tl.fma(r, 0.0013751574, 0.0083696535)
    q = tl.fma(q, r, 0.0416696)
    q = tl.fma(q, r, 0.16666512)
    q = tl.fma(q, r, 0.49999988)
    linear = 1.0 + r_hi
    e_hi = leading_12_bits(linear)
    e_lo = (linear - e_hi) + tl.fma(r * r, q, r_lo)
    return e_hi, e_lo, shifted.to(tl.int32, bitcast=True) - INTEGER_BITS


@triton.jit
def one_plus(e_hi, e_lo, scale):
    """(d, d_hi, d_lo): d = 1 + (e_hi + e_lo)·scale rounded, and as 12 bits + rest."""
    d = tl.fma(e_hi + e_lo, scale, 1.0)
    d_hi = leading_12_bits(d)
    return d, d_hi, tl.fma(e_lo, scale, tl.fma(e_hi, scale, 1.0 - d_hi))
