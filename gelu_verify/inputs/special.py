"""Special values, and the landmarks of GELU around which a sweep is dense."""

from __future__ import annotations

import math
from functools import cache

import mpmath

from gelu_verify.formats import Format
from gelu_verify.operators.base import FORMULAS


def special_bits(fmt: Format) -> list[int]:
    """Return the patterns every kernel must face: NaNs, ±inf, ±0, subnormal and largest values."""
    sign = fmt.sign_bit
    magnitudes = [0, 1, fmt.encode(fmt.smallest_normal) - 1, fmt.encode(fmt.smallest_normal)]
    magnitudes += [fmt.largest_bits, fmt.nan_bits]
    if fmt.infinities:
        magnitudes += [fmt.infinity_bits, fmt.infinity_bits | 1]
    return [pattern for magnitude in magnitudes for pattern in (magnitude, sign | magnitude)]


#: Points of the real line where GELU or a common implementation of it changes its behaviour:
#: guards at 6 and at |x/√2| = 6, where 1 + erf is 0 in float32, textbook cut-offs, ±√2.
_FIXED = (1.0, 3.0, 4.0, 5.0, 5.54, 6.0, 8.0, 6 * math.sqrt(2), 10.0, math.sqrt(2), 2.69894, 0.5)


@cache
def landmarks(fmt: Format) -> tuple[float, ...]:
    """Return values of the format around which a stratified sweep takes every neighbour."""
    from gelu_verify.reference.oracle import minimum
    from gelu_verify.reference.thresholds import thresholds

    points = {sign * point for point in _FIXED for sign in (-1.0, 1.0)}
    for formula in FORMULAS:
        points.add(float(minimum(formula)[0]))
        for derivative in (0, 1):
            points.update(thresholds(formula, fmt, derivative))
    rounded = {fmt.decode(fmt.round(mpmath.mpf(point))) for point in points}
    return tuple(sorted(rounded))
