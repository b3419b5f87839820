"""Coefficients of the fast reference, computed from mpmath at first use.

Nothing is pasted: every number is rounded once to float64 from at least 60 digits, so the tables
are the same on every machine, and a kernel on a GPU can be given the same tuples.

``erf``. Everything is a function of a = |x|. With k = 4 the maps

    s = 2a/(a + k) in [0, 2),    t = s - 1 = (a - k)/(a + k) in [-1, 1)

send [0, ∞) to an interval on which these two are smooth (Shepherd and Laframboise, "Chebyshev
approximation of (1+2x)exp(x²)erfc x in 0 ≤ x < ∞", Math. Comp. 36, 1981; their k is 3.75 with an
argument √2 times smaller):

    tail:   e^(a²/2)·Φ(-a)·(1 + 3a/4)             = 1/2 + s·W(t)
    slope:  e^(a²/2)·GELU'(-a) / (1 - a/a0)       = 1/2 + s·V(t)

a0 = 0.75179... is the zero of GELU'(-a); dividing it out leaves no cancellation anywhere. Writing
1/2 apart makes Φ(0) = GELU'(0) = 1/2 exact. The factor 3/4 (theirs is √2) is exact to multiply by,
and next to √(2/π), which would make W(-1) = 0: so s·W is small, and its rounding errors with it.
W and V are interpolated at Chebyshev points and evaluated as monomials in t: their Chebyshev
coefficients fall by about 5 a degree, faster than the 1 + √2 by which monomials could grow.

``tanh`` and ``sigmoid``: constants split so that the products in ``tails`` are exact.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import mpmath

from gelu_verify.reference import oracle

#: k of the map from a to t: 4 to 5 needs the fewest terms, 4 rounds least.
MAP_CENTRE = 4.0
#: The factor 3/4 of the tail.
TAIL_GROWTH = 0.75
#: Terms of W and of V: what is dropped is below 2^-55 of the result.
TAIL_TERMS = 25
SLOPE_TERMS = 24

_BITS = 320


@dataclass(frozen=True)
class ErfCoefficients:
    """W (``tail``) and V (``slope``), constant term first, and the zero a0 = zero_hi + zero_lo."""

    tail: tuple[float, ...]
    slope: tuple[float, ...]
    zero_hi: float
    zero_lo: float


@dataclass(frozen=True)
class LogisticConstants:
    """Constants of v(x) = x·(linear + cubic·x²), split into high and low parts, and of the zero.

    linear_hi is a multiple of 2^-40 below 2 (``tanh``) or has 29 bits (``sigmoid``); cubic_hi has
    27 bits. a0 = zero_hi + zero_lo is the zero of f'(-a), v0 = v(a0), decay = e^-v0.
    """

    linear_hi: float
    linear_lo: float
    cubic_hi: float
    cubic_lo: float
    zero_hi: float
    zero_lo: float
    argument_hi: float
    argument_lo: float
    decay: float


@cache
def erf_coefficients() -> ErfCoefficients:
    """Return the coefficients of the ``erf`` formula."""
    with mpmath.workprec(_BITS):
        zero = -oracle.minimum("erf", _BITS)[0]
        zero_hi, zero_lo = _split(zero, 53)

        def tail(a: Any) -> Any:
            return (1 + mpmath.mpf(TAIL_GROWTH) * a) * _scaled_tail(a)

        def slope(a: Any) -> Any:
            return (_scaled_tail(a) - a / mpmath.sqrt(2 * mpmath.pi)) / (1 - a / zero)

        return ErfCoefficients(
            _beyond_half(tail, TAIL_TERMS), _beyond_half(slope, SLOPE_TERMS), zero_hi, zero_lo
        )


@cache
def logistic_constants(formula: str) -> LogisticConstants:
    """Return the constants of ``tanh`` or ``sigmoid``."""
    with mpmath.workprec(_BITS):
        if formula == "tanh":
            linear = 2 * mpmath.sqrt(2 / mpmath.pi)
            cubic = linear * mpmath.mpf(oracle.TANH_CUBIC)
            linear_bits = 41
        else:
            linear, cubic = mpmath.mpf(oracle.SIGMOID_SLOPE), mpmath.mpf(0)
            linear_bits = 29
        zero = -oracle.minimum(formula, _BITS)[0]
        argument = zero * (linear + cubic * zero * zero)
        return LogisticConstants(
            *_split(linear, linear_bits),
            *_split(cubic, 27),
            *_split(zero, 53),
            *_split(argument, 53),
            float(mpmath.exp(-argument)),
        )


def _scaled_tail(a: Any) -> Any:
    """Return ``e^(a²/2)·Φ(-a)``; the exponents cost about 2·log2 a bits of the precision."""
    with mpmath.workprec(2 * _BITS):
        return mpmath.exp(a * a / 2) * mpmath.erfc(a / mpmath.sqrt(2)) / 2


def _beyond_half(function: Callable[[Any], Any], terms: int) -> tuple[float, ...]:
    """Return monomial coefficients in t of ``(function(a) - 1/2)/s``, constant term first.

    Interpolation at the ``terms`` Chebyshev points; the error is within a factor 2 of the best.
    """
    angles = [(2 * j + 1) * mpmath.pi / (2 * terms) for j in range(terms)]
    values = []
    for angle in angles:
        t = mpmath.cos(angle)
        a = mpmath.mpf(MAP_CENTRE) * (1 + t) / (1 - t)
        values.append((function(a) - mpmath.mpf(0.5)) / (1 + t))
    chebyshev = [
        2 * mpmath.fsum(v * mpmath.cos(i * w) for v, w in zip(values, angles, strict=True)) / terms
        for i in range(terms)
    ]
    chebyshev[0] /= 2
    return tuple(float(c) for c in _monomials(chebyshev))


def _monomials(chebyshev: list[Any]) -> list[Any]:
    """Return the monomial coefficients of a Chebyshev series, by T_(i+1) = 2t·T_i - T_(i-1)."""
    terms = len(chebyshev)
    previous, current = [1] + [0] * (terms - 1), [0, 1] + [0] * (terms - 2)
    total = [chebyshev[0] * entry for entry in previous]
    for coefficient in chebyshev[1:]:
        total = [sum_ + coefficient * entry for sum_, entry in zip(total, current, strict=True)]
        shifted = [0, *(2 * entry for entry in current[:-1])]
        following = [up - down for up, down in zip(shifted, previous, strict=True)]
        previous, current = current, following
    return total


def _split(exact: Any, bits: int) -> tuple[float, float]:
    """Return (hi, lo): ``exact`` rounded to ``bits`` bits, and the rest rounded to float64."""
    with mpmath.workprec(bits):
        hi = +exact
    return float(hi), float(exact - hi)
