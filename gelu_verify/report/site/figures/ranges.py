"""Where the regions of x lie, for the function and format of a result."""

from __future__ import annotations

from functools import cache

from gelu_verify import formats
from gelu_verify.errors import GeluVerifyError
from gelu_verify.measure.regions import TINY_BELOW, Region, Regions
from gelu_verify.records import KernelResult
from gelu_verify.report.site import axes

#: Operators whose x is the argument of GELU itself, and the order of its derivative.
DERIVATIVES = {
    "gelu": 0,
    "gelu_backward": 1,
    "bias_gelu": 0,
    "geglu": 0,
    "linear_gelu": 0,
}


def segments(result: KernelResult) -> dict[str, list[tuple[float, float]]]:
    """Return, for each region, its pieces on the axis of x; nothing for an unknown function."""
    if result.operator not in DERIVATIVES:
        return {}
    return _segments(result.formula, result.format, DERIVATIVES[result.operator])


@cache
def _segments(formula: str, name: str, derivative: int) -> dict[str, list[tuple[float, float]]]:
    try:
        borders = Regions.of(formula, formats.get(name), derivative).borders()
    except GeluVerifyError:
        return {}
    zero, deep, tail, shoulder, one, identity = (axes.place(b) for b in borders)
    tiny = axes.place(TINY_BELOW)
    return {
        Region.ZERO: [(-axes.EDGE, zero)],
        Region.DEEP_TAIL: [(zero, deep)],
        Region.TAIL: [(deep, tail)],
        Region.SHOULDER: [(tail, shoulder)],
        Region.CENTRE: [(shoulder, -tiny), (tiny, one)],
        Region.TINY: [(-tiny, tiny)],
        Region.POSITIVE: [(one, identity)],
        Region.SATURATED: [(identity, axes.EDGE)],
    }
