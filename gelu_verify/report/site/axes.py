"""Axes on which a whole range fits: x and the error in ULP, logarithmic on both sides of 0."""

from __future__ import annotations

import math
from typing import Any

from gelu_verify.measure.envelope import HIGHEST, LOWEST

_ZERO = 0.5 - LOWEST
#: How far the axis of x reaches, on each side.
EDGE = HIGHEST + 1 + _ZERO


def column(sign: str, exponent: int) -> float:
    """Return the middle of a binade's column on the axis of x."""
    middle = min(max(exponent, LOWEST), HIGHEST) + 0.5 + _ZERO
    return -middle if sign == "-" else middle


def place(x: float) -> float:
    """Return where x lies on the axis of x: log2|x| from the smallest binade, with x's sign."""
    if x == 0.0 or math.isnan(x):
        return 0.0
    size = HIGHEST + 1 if math.isinf(x) else math.log2(abs(x))
    return math.copysign(min(max(size, LOWEST), HIGHEST + 1) + _ZERO, x)


def x_axis() -> dict[str, Any]:
    """Return the axis of x, with ticks at powers of two."""
    powers = (-18, -12, -6, 0, 3, 8, HIGHEST)
    values = [*(-place(2.0**p) for p in reversed(powers)), 0.0, *(place(2.0**p) for p in powers)]
    names = [_power(p) for p in powers]
    texts = [*("−" + name for name in reversed(names)), "0", *names]
    return {
        "title": {"text": "x (logarithmic on both sides of 0)"},
        "tickvals": values,
        "ticktext": texts,
        "range": [-EDGE - 0.5, EDGE + 0.5],
        "tickangle": 0,
        "zeroline": False,
    }


def _power(exponent: int) -> str:
    return str(2**exponent) if 0 <= exponent <= 3 else f"2<sup>{exponent}</sup>"


def height(error_ulp: float) -> float:
    """Return where a signed error lies on its axis: log2(1 + |error|), with its sign."""
    return math.copysign(math.log2(1.0 + abs(error_ulp)), error_ulp)


def error_axis(largest: float, signed: bool = True) -> dict[str, Any]:
    """Return the axis of errors, in ULP up to ``largest``, with ticks at 0, 1 and powers of ten."""
    top = max(1.0, largest)
    decades = range(1, math.ceil(math.log10(top)) + 1)
    step = max(1, math.ceil(len(decades) / 6))
    sizes = [10.0**d for d in decades if d % step == 0]
    if top < 1e3:
        sizes = [1.0, *sizes]  # beyond, 1 is too near to 0 for a label
    if top < 10:
        sizes = [size for size in (0.5, 1.0, 2.0, 5.0) if size <= top]
    values = [0.0, *(height(s) for s in sizes)]
    texts = ["0", *(_shown(s) for s in sizes)]
    if signed:
        values = [-v for v in reversed(values[1:])] + values
        texts = ["−" + t for t in reversed(texts[1:])] + texts
    reach = height(top) * 1.08 + 0.1
    return {
        "title": {"text": "error in ULP"},
        "tickvals": values,
        "ticktext": texts,
        "range": [-reach if signed else 0.0, reach],
    }


def _shown(size: float) -> str:
    return f"{size:g}" if size < 10000 else f"10<sup>{round(math.log10(size))}</sup>"
