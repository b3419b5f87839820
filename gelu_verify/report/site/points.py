"""The points that a record names: the worst of each region, class, allowance and reversal."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from gelu_verify.records import Accuracy, Point

#: The argument of GELU, by its name in an operator's arguments.
_SWEPT = ("x", "gate")


@dataclass(frozen=True)
class Named:
    """A point and all that it is the worst or the first of."""

    why: str
    point: Point


def named(accuracy: Accuracy) -> list[Named]:
    """Return each point once, the largest errors first, those without a distance last."""
    reasons: dict[tuple[tuple[str, ...], str], list[str]] = {}
    points: dict[tuple[tuple[str, ...], str], Point] = {}
    for why, point in _all(accuracy):
        key = (tuple(point.bits.values()), point.actual_bits)
        reasons.setdefault(key, []).append(why)
        points[key] = point
    found = [Named("; ".join(dict.fromkeys(reasons[key])), points[key]) for key in points]
    return sorted(found, key=lambda one: -_size(one.point))


def _all(a: Accuracy) -> Iterator[tuple[str, Point]]:
    yield "worst of all", a.worst
    for region in a.regions:
        if region.worst is not None and region.count:
            yield f"worst of {region.region.replace('_', ' ')}", region.worst
    for seen in a.classes:
        name = seen.name.replace("_", " ")
        yield f"first {name}", seen.first
        yield f"worst {name}", seen.worst
    for use in a.allowances:
        yield f"allowed by {use.allowance} in {use.region.replace('_', ' ')}", use.worst


def _size(point: Point) -> float:
    return -1.0 if math.isnan(point.error_ulp) else abs(point.error_ulp)


def swept(point: Point) -> float | None:
    """Return x of a point; None where there is none that reads as a number."""
    text = next((point.inputs[name] for name in _SWEPT if name in point.inputs), None)
    return None if text is None else number(text)


def number(text: str) -> float | None:
    """Return a decimal of a record as a float, None for text that is no number."""
    try:
        return float(text.partition(" ")[0])
    except ValueError:
        return None
