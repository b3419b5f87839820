"""The exact values in compiled code for CPUs: the formulas of ``reference.tails``, one by one.

Numba neither contracts nor reorders (``fastmath`` is off), so the error bounds are those of
``tails`` where the C library's exp and expm1 are within 1 ULP, as glibc's are. Each function takes
a = |x| >= 0 and the table that :func:`table` returns.
"""

from __future__ import annotations

import math
from functools import cache

import numpy as np

from gelu_verify.exhaustive.jit import compiled
from gelu_verify.reference import coefficients

ERF, TANH, SIGMOID = range(3)
FORMULAS = {"erf": ERF, "tanh": TANH, "sigmoid": SIGMOID}
#: Terms of the polynomial of erf in the table: those of W and V, with zeros in front.
TERMS = 25
_ROUND_16 = 1.5 * 2.0 ** (52 - 16)
_ROUND_23 = 1.5 * 2.0 ** (52 - 23)


@cache
def table(formula: str, derivative: int) -> np.ndarray:
    """Return the coefficients, float64: of erf the polynomial from its last term to its first, and
    the zero; of the others the fields of ``LogisticConstants``.
    """
    if formula == "erf":
        erf = coefficients.erf_coefficients()
        terms = erf.slope if derivative else erf.tail
        padding = [0.0] * (TERMS - len(terms))
        return np.array([*padding, *reversed(terms), erf.zero_hi, erf.zero_lo])
    c = coefficients.logistic_constants(formula)
    values = [c.linear_hi, c.linear_lo, c.cubic_hi, c.cubic_lo, c.zero_hi, c.zero_lo]
    return np.array([*values, c.argument_hi, c.argument_lo, c.decay])


@compiled
def _argument(a, formula, c):
    """Return v(a) as (high, low): ``tails._sigmoid_argument`` and ``_tanh_argument``."""
    if formula == SIGMOID:
        larger, smaller = a * c[0], a * c[1]
    else:
        square = a * a
        upper = (square + _ROUND_16) - _ROUND_16
        lower = square - upper
        factor = square * c[2] + c[0]
        factor = (factor + _ROUND_23) - _ROUND_23
        rest = (c[0] - factor) + upper * c[2]
        rest = rest + ((square * c[3] + c[1]) + lower * c[2])
        larger, smaller = factor * a, rest * a
    high = larger + smaller
    return high, (larger - high) + smaller


@compiled
def logistic_tail(a, formula, c):
    """Return σ(-v(a)): ``tails._logistic_tail``."""
    high, low = _argument(a, formula, c)
    decay = math.exp(-high)
    decay = decay - low * decay
    return min(decay / (decay + 1.0), 0.5)


@compiled
def logistic_slope(a, formula, c):
    """Return f'(-a): ``tails.tanh_slope`` and ``sigmoid_slope``."""
    high, low = _argument(a, formula, c)
    if formula == SIGMOID:
        gap = (c[6] - high) + (c[7] - low)
        rise = gap
    else:
        linear = c[0] + c[1]
        square = (a * c[4] + a * a + c[4] * c[4]) * (c[2] + c[3])
        distance = (c[4] - a) + c[5]
        rise = (square * 3.0 + linear) * distance
        gap = (square + linear) * distance
    bracket = math.expm1(gap) * c[8] + rise
    decay = math.exp(-high)
    decay = decay - low * decay
    denominator = decay + 1.0
    if a < 2.0**-56:
        return 0.5
    return min(decay * bracket / (denominator * denominator), 0.5)


@compiled
def _polynomial(t, result, c):
    """Go on with the evaluation of the polynomial in t, in place, (N,) each, five terms a pass.

    One pass a term would wait for the memory, one pass for all is not vectorised.
    """
    for group in range(TERMS // 5):
        c0, c1, c2 = c[5 * group], c[5 * group + 1], c[5 * group + 2]
        c3, c4 = c[5 * group + 3], c[5 * group + 4]
        for i in range(len(t)):
            r = result[i] * t[i] + c0
            r = r * t[i] + c1
            r = r * t[i] + c2
            r = r * t[i] + c3
            result[i] = r * t[i] + c4


@compiled
def erf_left(x, derivative, c, t, out):
    """Write Φ(-|x|) or GELU'(-|x|), x float64 (N,): ``tails.erf_tail`` and ``erf_slope``.

    t: room for N numbers.
    """
    for i in range(len(x)):
        a = abs(x[i])
        t[i] = a / (a + 4.0) * 2.0 - 1.0
        out[i] = 0.0
    _polynomial(t, out, c)
    zero_hi, zero_lo = c[TERMS], c[TERMS + 1]
    for i in range(len(x)):
        a = abs(x[i])
        # s again: t + 1 would round.
        out[i] = out[i] * (a / (a + 4.0) * 2.0) + 0.5
        if derivative == 1:
            out[i] = out[i] * (((zero_hi - a) + zero_lo) / zero_hi)
        else:
            out[i] = out[i] / (a * 0.75 + 1.0)
        t[i] = a * a * -0.5
    for i in range(len(x)):
        out[i] = min(out[i] * math.exp(t[i]), 0.5)


@compiled
def full(x, formula, derivative, c, t, out):
    """Write the exact values at x, float64 (N,), 2^-12 <= |x|: see ``reference.fast``."""
    if formula == ERF:
        erf_left(x, derivative, c, t, out)
    else:
        for i in range(len(x)):
            if derivative == 1:
                out[i] = logistic_slope(abs(x[i]), formula, c)
            else:
                out[i] = logistic_tail(abs(x[i]), formula, c)
    for i in range(len(x)):
        left = out[i] if x[i] < 0.0 else 1.0 - out[i]
        out[i] = left if derivative == 1 else left * x[i]


@compiled
def tiny(x, derivative, c2, c4, out):
    """Write the exact values at x, float64 (N,), |x| < 2^-12: see ``exhaustive.exact``."""
    if derivative == 1:
        for i in range(len(x)):
            square = x[i] * x[i]
            out[i] = (square * (4.0 * c4) + 2.0 * c2) * x[i] + 0.5
    else:
        for i in range(len(x)):
            square = x[i] * x[i]
            out[i] = (square * c4 + c2) * square + 0.5 * x[i]
