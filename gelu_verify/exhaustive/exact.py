"""Exact values of a block within one span: Taylor series next to 0, else the fast reference.

For |x| < 2^-12, with f even but for its first term (s(x) - 1/2 is odd, f(x) = x·s(x)),

    f(x)  = x/2 + x²(c2 + c4·x²),        remainder below c6·x⁶,  |c6·x⁵| < 2^-60 of x/2
    f'(x) = 1/2 + x(2·c2 + 4·c4·x²)      likewise

with c2 = f''(0)/2 and so on from the oracle. x/2 is exact; the bracket is at most 2^-12 of it, so
its five roundings count 2^-9 units, and the sum is rounded once: 1.1 units of 2^-53 in all.
"""

from __future__ import annotations

from functools import cache

import mpmath
import torch

from gelu_verify.exhaustive.spans import Span, Zone
from gelu_verify.reference import fast, oracle

_SERIES_BOUND = 1.1 * 2.0**-53
_ONE = 0x3F80_0000
_BINADE = 1 << 23
_MAGNITUDE = 0x7FFF_FFFF


def of_block(
    span: Span, x: torch.Tensor, formula: str, derivative: int
) -> tuple[torch.Tensor, float]:
    """Return the exact values at x (N,), float64, all within ``span``, and their relative bound."""
    if span.zone not in (Zone.SERIES, Zone.FLAT_HALF):
        return beyond_tiny(x, formula, derivative)
    return tiny(x, formula, derivative, has_zero=span.start & _MAGNITUDE == 0)


def beyond_tiny(x: torch.Tensor, formula: str, derivative: int) -> tuple[torch.Tensor, float]:
    """Return the exact values at x (N,), float64, by the fast reference, and their bound."""
    function = fast.derivative if derivative else fast.gelu
    return function(x, formula), fast.RELATIVE_ERROR_BOUND[formula, derivative] * 2.0**-53


def tiny(
    x: torch.Tensor, formula: str, derivative: int, has_zero: bool
) -> tuple[torch.Tensor, float]:
    """Return the exact values at x (N,), |x| < 2^-12, by the series, and their bound."""
    c2, c4 = series(formula)
    square = x.square()
    if derivative:
        return square.mul_(4 * c4).add_(2 * c2).mul_(x).add_(0.5), _SERIES_BOUND
    high = (square * c4).add_(c2).mul_(square).add_(x, alpha=0.5)
    if has_zero:
        high.copysign_(x)  # the sum loses the sign of -0
    return high, _SERIES_BOUND


def flat_patterns(span: Span, bits: torch.Tensor, derivative: int) -> torch.Tensor | None:
    """Return the patterns that the exact values of a flat span are next to, None for other spans.

    int32, (N,), or of one element if all are alike.
    """
    if span.zone is Zone.FLAT_ZERO:
        return bits.new_tensor([-(1 << 31)])
    if span.zone is Zone.FLAT_IDENTITY:
        return bits.new_tensor([_ONE]) if derivative else bits
    if span.zone is Zone.FLAT_HALF:
        # One less in the exponent field is half the number.
        return bits.new_tensor([_ONE - _BINADE]) if derivative else bits - _BINADE
    return None


@cache
def series(formula: str) -> tuple[float, float]:
    """Return c2 and c4 of f, correctly rounded, from the oracle's second derivative.

    c4 = f''''(0)/24, the second derivative of f'' at 0: by a central difference in 400 bits with
    step 2^-60, whose error is below 2^-100.
    """
    with mpmath.workprec(400):
        step = mpmath.ldexp(1, -60)
        at_zero, beside = (oracle.value(formula, h, derivative=2, bits=390) for h in (0, step))
        fourth = 2 * (beside - at_zero) / step**2
        return float(at_zero / 2), float(fourth / 24)
