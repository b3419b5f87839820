"""The exact values of a block in Triton, float64: the same formulas as ``reference.tails``.

Pure functions of values already loaded. ``table`` points at coefficients: for erf those of
``coefficients.erf_coefficients()``, for tanh and sigmoid the fields of ``logistic_constants``, in
the order of :func:`gelu_verify.exhaustive.gpu_pass.reference_table`. The error bounds are those of
``tails`` where the device's exp is within 1 ULP, as libdevice states; the expm1 of the logistic
derivatives is Kahan's ``(u - 1)·d/log u``, which adds 3u.
"""

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def _gauss(a):
    return tl.exp(a * a * -0.5)


@triton.jit
def _beyond_half(a, table, TERMS: tl.constexpr):
    """Return 1/2 + s·P(t), s = 2a/(a + 4), t = s - 1 (``tails._beyond_half``)."""
    s = a / (a + 4.0) * 2.0
    t = s - 1.0
    result = tl.load(table + (TERMS - 1)) + t * 0.0
    for step in tl.static_range(1, TERMS):
        result = result * t + tl.load(table + (TERMS - 1 - step))
    return result * s + 0.5


@triton.jit
def _fast_two_sum(larger, smaller):
    high = larger + smaller
    return high, (larger - high) + smaller


@triton.jit
def _sigmoid_argument(a, table):
    return _fast_two_sum(a * tl.load(table), a * tl.load(table + 1))


@triton.jit
def _tanh_argument(a, table):
    """Return v = a·(linear + cubic·a²) as (high, low) (``tails._tanh_argument``)."""
    linear_hi, linear_lo = tl.load(table), tl.load(table + 1)
    cubic_hi, cubic_lo = tl.load(table + 2), tl.load(table + 3)
    # Adding 1.5·2^(52+e) and taking it away rounds to a multiple of 2^e: e = -16 and -23.
    round_16, round_23 = tl.load(table + 9), tl.load(table + 10)
    square = a * a
    upper = (square + round_16) - round_16
    lower = square - upper
    factor = square * cubic_hi + linear_hi
    factor = (factor + round_23) - round_23
    rest = (linear_hi - factor) + upper * cubic_hi
    small = square * cubic_lo + linear_lo
    rest = rest + (small + lower * cubic_hi)
    return _fast_two_sum(factor * a, rest * a)


@triton.jit
def _decay(high, low):
    decay = tl.exp(-high)
    return decay - low * decay


@triton.jit
def _expm1(d):
    """Return e^d - 1 by Kahan's formula: the errors of u - 1 and of log u cancel."""
    u = tl.exp(d)
    safe = tl.where((u == 1.0) | (u == 0.0), 2.0, u)
    value = (u - 1.0) * d / tl.log(safe)
    value = tl.where(u == 1.0, d, value)
    return tl.where(u == 0.0, -1.0, value)


@triton.jit
def _logistic_slope(a, high, low, gap, rise, table):
    bracket = _expm1(gap) * tl.load(table + 8) + rise
    decay = _decay(high, low)
    denominator = decay + 1.0
    result = decay * bracket / (denominator * denominator)
    # 2^-56: nearer to 0 the derivative is 1/2 to within the error.
    return tl.where(a < 1.3877787807814457e-17, 0.5, result)


@triton.jit
def tail(a, table, FORMULA: tl.constexpr, TERMS: tl.constexpr):
    """Return s(-a) = f(-a)/(-a), a = |x| >= 0: Φ(-a) or σ(-v)."""
    if FORMULA == "erf":
        q = _beyond_half(a, table, TERMS) / (a * 0.75 + 1.0) * _gauss(a)
    elif FORMULA == "tanh":
        high, low = _tanh_argument(a, table)
        decay = _decay(high, low)
        q = decay / (decay + 1.0)
    else:
        high, low = _sigmoid_argument(a, table)
        decay = _decay(high, low)
        q = decay / (decay + 1.0)
    return tl.minimum(q, 0.5)


@triton.jit
def slope(a, table, FORMULA: tl.constexpr, TERMS: tl.constexpr):
    """Return f'(-a), a = |x| >= 0."""
    if FORMULA == "erf":
        zero_hi, zero_lo = tl.load(table + TERMS), tl.load(table + TERMS + 1)
        factor = ((zero_hi - a) + zero_lo) / zero_hi
        d = _beyond_half(a, table, TERMS) * factor * _gauss(a)
    elif FORMULA == "tanh":
        zero_hi, zero_lo = tl.load(table + 4), tl.load(table + 5)
        linear = tl.load(table) + tl.load(table + 1)
        square = a * zero_hi + a * a + zero_hi * zero_hi
        square = square * (tl.load(table + 2) + tl.load(table + 3))
        distance = (zero_hi - a) + zero_lo
        rise = (square * 3.0 + linear) * distance
        gap = (square + linear) * distance
        high, low = _tanh_argument(a, table)
        d = _logistic_slope(a, high, low, gap, rise, table)
    else:
        high, low = _sigmoid_argument(a, table)
        gap = (tl.load(table + 6) - high) + (tl.load(table + 7) - low)
        d = _logistic_slope(a, high, low, gap, gap, table)
    return tl.minimum(d, 0.5)


@triton.jit
def exact(x, table, c2, c4, FORMULA: tl.constexpr, DERIVATIVE: tl.constexpr, SERIES: tl.constexpr,
          TERMS: tl.constexpr):  # fmt: skip
    """Return the exact value at x (float64): the series next to 0, else through the left tail."""
    if SERIES:
        square = x * x
        if DERIVATIVE == 1:
            result = (square * (4.0 * c4) + 2.0 * c2) * x + 0.5
        else:
            result = (square * c4 + c2) * square + 0.5 * x
    else:
        a = tl.abs(x)
        if DERIVATIVE == 1:
            left = slope(a, table, FORMULA, TERMS)
            result = tl.where(x < 0.0, left, 1.0 - left)
        else:
            q = tail(a, table, FORMULA, TERMS)
            result = tl.where(x < 0.0, q, 1.0 - q) * x
    return result
