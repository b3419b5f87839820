"""The erf form, x·Φ(x), by fused multiply-add in about 50 instructions."""

import triton
import triton.language as tl

from .bits import fused, negated, with_sign_of, zero_or_more

# -1.0006·log2(e): n is chosen without v·P, which is about -0.0006·y in the far tail.
MINUS_LOG2E = tl.constexpr(-1.4435606)
LN2 = tl.constexpr(0.6931472)  # 21 bits: n·LN2 - y is exact
# 1.5·2^23 + 127 + 24: adding it rounds to an integer whose low bits are the exponent of 2^(24+n).
TO_EXPONENT = tl.constexpr(12583063.0)
MINUS_TWO_TO_MINUS_24 = tl.constexpr(-5.960464477539063e-08)
BEND = tl.constexpr(0.859375)  # 55/64, a short number


@triton.jit
def _tail_ratio(a):
    """(v_hi, v_lo, bend) of v = a/(2 + BEND·a): v_hi has 8 bits, bend = BEND·v_hi is exact.

    The square of an approximate root may be 2^-22 off: v_lo is 2^-8 of v at most.
    """
    root = tl.math.rsqrt(fused(a, BEND, 2.0))  # as one instruction; a division takes eight
    inverse = root * root
    v_hi = ((a * inverse).to(tl.int32, bitcast=True) & -0x10000).to(tl.float32, bitcast=True)
    bend = v_hi * BEND
    return v_hi, fused(negated(bend), a, fused(v_hi, -2.0, a)) * inverse, bend


@triton.jit
def _flat(v):
    """P(v) of gelu_erf, at most 0.13; v·P is off by 2^-28.5."""
    t = v - 0.625
    p = fused(t, -0.045336608, -0.058990646)
    p = fused(p, t, 0.031501647)
    p = fused(p, t, 0.09677455)
    p = fused(p, t, 0.020870263)
    p = fused(p, t, -0.102902204)
    p = fused(p, t, -0.08422811)
    p = fused(p, t, 0.1040127)
    p = fused(p, t, 0.19397326)
    p = fused(p, t, -0.17176554)
    return fused(p, t, -0.030529846)


@triton.jit
def _exp_rest(r):
    """(e^r - 1 - r)/r², |r| < 0.38; r² times it is off by 2^-27.1."""
    q = fused(r, 0.0013714992, 0.0083761085)
    q = fused(q, r, 0.041671004)
    q = fused(q, r, 0.16666453)
    return fused(q, r, 0.4999998)


@triton.jit
def gelu_erf(x):
    """x·Φ(x). Error 0.842 ULP (at -13.173285), 0.838 for x > 0 (at 0.6075381), 0.5 subnormal x.

    With a = |x| and v = a/(2 + 55a/64), aΦ(-a) = v·e^-(a²/2 + 55v/64 - v·P(v)): the exponent is
    chosen so that P is almost 0. It is n·ln 2 + r + r_lo, r exact. What the product v·(1 + r) loses
    is added back, so that hi + lo is the first sum of full size that rounds; the last operation
    rounds a normal negative result no more, and a positive or subnormal one once.
    """
    a = tl.minimum(tl.abs(x), 14.375)
    half = 0.5 * a
    v_hi, v_lo, bend = _tail_ratio(a)
    v = v_hi + v_lo

    y = fused(a, half, bend)
    r_lo = fused(negated(a), half, y - bend)  # what y lost
    shifted = fused(y, MINUS_LOG2E, TO_EXPONENT)
    r = fused(shifted - TO_EXPONENT, -LN2, negated(y))
    r_lo = fused(v, _flat(v), fused(v_lo, -BEND, r_lo))
    rest = r + r_lo
    rest = fused(rest * rest, _exp_rest(rest), r_lo)

    # v·e^(r + r_lo) = (v_hi + v_lo)(1 + r + rest), then times 2^n: 2^-149 at least, or 0.
    hi = fused(v_hi, r, v_hi)
    lo = fused(v_hi, r, v_hi - hi)
    lo = fused(v, rest, fused(v_lo, r, v_lo + lo))
    scale = (shifted.to(tl.int32, bitcast=True) << 23).to(tl.float32, bitcast=True)
    return fused(hi + lo, scale * MINUS_TWO_TO_MINUS_24, zero_or_more(x))


@triton.jit
def gelu_erf_guarded(x):
    """x·Φ(x), but zero of x's sign for x < -6 and x for x > 6: a common saturation guard."""
    guarded = tl.where(x < -6.0, 0.0, gelu_erf(x))
    return with_sign_of(tl.where(x > 6.0, x, guarded), x)
