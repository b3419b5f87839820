"""Single elements in mpmath: sums without rounding, and functions with 200 bits or more.

Written apart from the algebra of :mod:`gelu_verify.bounds`, which it is the second opinion on.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import mpmath
from torch import Tensor

from gelu_verify.reference import oracle

#: Bits of any sum of products of two float64 numbers: exponents from -2148 to 2048, and its length.
SUM_BITS = 4400


def numbers(part: Tensor) -> list[float]:
    """Return the elements of a vector, exactly."""
    values: list[float] = part.detach().double().flatten().tolist()
    return values


def dot(left: Sequence[Any], right: Sequence[Any]) -> Any:
    """Return Σ left·right without rounding; NaN and infinities as in IEEE 754."""
    with mpmath.workprec(SUM_BITS):
        return mpmath.fdot(left, right)


def activated(s: Any, formula: str) -> Any:
    """Return f(s) of a number of any size; beyond 1024 the tail is below every format."""
    if abs(s) <= 1024 or not mpmath.isfinite(s):
        return oracle.value(formula, s)
    return s if s > 0 else oracle.value(formula, -1024.0)


def working_bits(*sizes: Any) -> int:
    """Return bits that leave 256 after the point of numbers of such sizes."""
    finite = [abs(size) for size in sizes if mpmath.isfinite(size) and size != 0]
    return 256 + max([0, *(int(mpmath.mag(size)) for size in finite)])
