"""The exact GELU and its derivatives a second time, in MPFR (gmpy2).

Source: Fousse et al., "MPFR: a multiple-precision binary floating-point library with correct
rounding", ACM TOMS 33(2), 2007.
"""

from __future__ import annotations

import math
from typing import Any

import mpmath

from gelu_verify.reference import oracle
from gelu_verify.reference.optional import load


def enclosure(formula: str, x: float, derivative: int = 0, bits: int = 200) -> tuple[Any, Any]:
    """Return (lower, upper) around the exact value, evaluated in MPFR, as mpmath numbers."""
    gmpy2 = load("gmpy2")
    oracle.check_names(formula, derivative)
    amplified = 3 * max(0, math.frexp(x)[1])
    precision = bits + 128 + amplified
    context = gmpy2.context(
        precision=precision,
        # The default range underflows where mpmath does not: erf's tail at -1e3 is 2^-721350,
        # tanh's is 2^-102947522.
        emin=gmpy2.get_emin_min(),
        emax=gmpy2.get_emax_max(),
        trap_underflow=True,
        trap_overflow=False,
        trap_invalid=True,
    )
    with context:
        positive, negative = _PARTS[formula](gmpy2, gmpy2.mpfr(x), derivative)
        total = positive - negative
        # Each part carries a few roundings, the exponents' ones amplified by their size; 128 bits
        # absorb the cancellation at a float64 next to a zero (53 bits) and 16 of rounding.
        error = (abs(positive) + abs(negative)) * gmpy2.exp2(16 + amplified - precision)
        lower, upper = total - error, total + error
        return _from_mpfr(lower, precision), _from_mpfr(upper, precision)


def _erf(gmpy2: Any, x: Any, derivative: int) -> tuple[Any, Any]:
    """Return two numbers whose difference is x·Φ, Φ + x·φ or (2 - x²)·φ."""
    density = gmpy2.exp(-(x * x) / 2) / gmpy2.sqrt(2 * gmpy2.const_pi())
    if derivative == 2:
        return 2 * density, x * x * density
    probability = gmpy2.erfc(-x / gmpy2.sqrt(gmpy2.mpfr(2))) / 2
    return (x * probability, gmpy2.mpfr(0)) if derivative == 0 else (probability, -x * density)


def _tanh(gmpy2: Any, x: Any, derivative: int) -> tuple[Any, Any]:
    slope, cubic = gmpy2.sqrt(8 / gmpy2.const_pi()), gmpy2.mpfr(44715) / 1000000
    v = slope * (x + cubic * x**3)
    return _logistic(gmpy2, x, v, slope + 3 * slope * cubic * x * x, derivative, curve=6 * cubic)


def _sigmoid(gmpy2: Any, x: Any, derivative: int) -> tuple[Any, Any]:
    slope = gmpy2.mpfr(1702) / 1000
    return _logistic(gmpy2, x, slope * x, slope, derivative, curve=gmpy2.mpfr(0))


def _logistic(
    gmpy2: Any, x: Any, v: Any, v1: Any, derivative: int, *, curve: Any
) -> tuple[Any, Any]:
    """Return two numbers whose difference is x·σ(v) or a derivative, by E = e^-|v|.

    σ(|v|) = 1/(1+E), σ(-|v|) = E/(1+E), σσ' terms as E/(1+E)²; the oracle divides otherwise.
    ``curve`` is v''/(x·slope), with slope = v1 at 0.
    """
    decay = gmpy2.exp(-abs(v))
    both = decay / (1 + decay) ** 2
    logistic = (decay if v < 0 else gmpy2.mpfr(1)) / (1 + decay)
    zero = gmpy2.mpfr(0)
    if derivative == 0:
        return x * logistic, zero
    if derivative == 1:
        return logistic, -x * v1 * both
    # v'' = curve·slope·x, and v1 = slope·(1 + curve·x²/2).
    v2 = curve * x * v1 / (1 + curve * x * x / 2)
    return (2 * v1 + x * v2) * both, x * v1 * v1 * both * gmpy2.tanh(v / 2)


_PARTS = {"erf": _erf, "tanh": _tanh, "sigmoid": _sigmoid}


def _from_mpfr(number: Any, precision: int) -> Any:
    mantissa, exponent = number.as_mantissa_exp()
    with mpmath.workprec(precision + 8):
        return mpmath.ldexp(int(mantissa), int(exponent))
