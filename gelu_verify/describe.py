"""Numbers as people read them: shortest decimals, bit patterns, exact values."""

from __future__ import annotations

from typing import Any

import mpmath
import numpy as np

from gelu_verify.formats import Format
from gelu_verify.measure.summary import Sample
from gelu_verify.operators import Operator
from gelu_verify.records import Point

#: Binary exponent of 10^-100000.
_SMALLEST_SHOWN = -332192


def value(number: float, fmt: Format) -> str:
    """Return a short decimal that reads back as the same value of the format."""
    if fmt.bits == 64:
        return repr(float(number))
    return str(np.float32(number))


def bits(pattern: int, fmt: Format) -> str:
    """Return a bit pattern in hexadecimal, all digits."""
    return f"0x{pattern & ((1 << fmt.bits) - 1):0{fmt.bits // 4}X}"


def exact(number: Any) -> str:
    """Return an mpmath number with 17 significant digits.

    Of one below 10^-100000 only the sign is shown: its exponent alone may have hundreds of digits.
    """
    if number != 0 and mpmath.isfinite(number) and mpmath.mag(number) < _SMALLEST_SHOWN:
        return "-0 (above -1e-100000)" if number < 0 else "0 (below 1e-100000)"
    return str(mpmath.nstr(number, 17, min_fixed=-5, max_fixed=7))


def point(sample: Sample, operator: Operator, formula: str, fmt: Format) -> Point:
    """Describe an element; its exact value comes from the oracle."""
    patterns = [pattern & ((1 << fmt.bits) - 1) for pattern in sample.inputs]
    numbers = [fmt.decode(pattern) for pattern in patterns]
    got = sample.actual & ((1 << fmt.bits) - 1)
    return Point(
        inputs=dict(zip(operator.arguments, (value(n, fmt) for n in numbers), strict=True)),
        bits=dict(zip(operator.arguments, (bits(p, fmt) for p in patterns), strict=True)),
        exact=exact(exact_value(numbers, operator, formula)),
        actual=value(fmt.decode(got), fmt),
        actual_bits=bits(got, fmt),
        error_ulp=sample.error_ulp,
    )


def exact_value(numbers: list[float], operator: Operator, formula: str) -> Any:
    """Return the exact value at Python floats, as an mpmath number."""
    return operator.exact_at(numbers, formula)
