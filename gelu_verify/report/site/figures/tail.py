"""The function in its left tail, where kernels lose it, and the error there."""

from __future__ import annotations

from functools import cache
from typing import Any

import mpmath

from gelu_verify.measure.regions import DEEP_TAIL_FROM, TAIL_FROM, Region
from gelu_verify.records import Accuracy, KernelResult, Saturation
from gelu_verify.reference import oracle
from gelu_verify.report.numbers import figure
from gelu_verify.report.site.figures.figure import Figure, log_axis, note, plain, threshold
from gelu_verify.report.site.points import named, number, swept

#: Operators with one argument beside which nothing changes the value, or only a factor dy.
_ORDERS = {"gelu": 0, "gelu_backward": 1, "linear_gelu": 0}
_STEPS = 96


def tail(result: KernelResult) -> Figure | None:
    """Return |f| for x < -1 from the oracle, the kernel's results that the record names, errors."""
    a, guard = result.accuracy, result.saturation
    if a is None or result.operator not in _ORDERS or result.formula not in oracle.FORMULAS:
        return None
    if guard is None:
        return None
    left = 1.08 * min(guard.zero_needed_from, guard.zero_from or 0.0, TAIL_FROM - 1)
    exact, xs, sizes = _curve(result.formula, _ORDERS[result.operator], left)
    data = [
        {"type": "scatter", "mode": "lines", "name": exact, "x": xs, "y": sizes, "meta": "exact"},
        *_results(a, left),
        _errors(a, guard, left),
    ]
    caption = (
        f"The exact |f(x)| of {result.formula} for x below −1, and what the kernel gave at the "
        "points that the record names (a result of 0 is drawn on the lower edge); below, the "
        f"largest error of each region of the tail. {guard.sentence}."
    )
    return Figure("tail", "The left tail", caption, data, _layout(guard, left, data[-1]["y"]))


@cache
def _curve(formula: str, order: int, left: float) -> tuple[str, list[float], list[float]]:
    """Return the name of the exact curve, x and log10|f(x)|: fp64's tail is below float64."""
    xs = [left + (-1.0 - left) * i / _STEPS for i in range(_STEPS + 1)]
    sizes = [
        float(mpmath.log10(abs(oracle.value(formula, x, derivative=order, bits=60)))) for x in xs
    ]
    name = "exact |f′(x)|" if order else "exact |f(x)|"
    return name, [round(x, 4) for x in xs], [round(size, 4) for size in sizes]


def _results(a: Accuracy, left: float) -> list[dict[str, Any]]:
    """Return the kernel's results in the tail: those with a size, and the zeros."""
    sized: list[tuple[float, float, str]] = []
    zeros: list[tuple[float, str]] = []
    for one in named(a):
        x, got = swept(one.point), number(one.point.actual)
        factor = number(one.point.inputs.get("dy", "1"))
        if x is None or got is None or not factor or not left <= x < -1.0:
            continue
        told = plain(f"{one.point.shown}: got {one.point.actual}, exact {one.point.exact}")
        if got == 0.0:
            zeros.append((x, told))
        elif abs(got) < float("inf"):
            sized.append((x, float(mpmath.log10(abs(mpmath.mpf(got) / factor))), told))
    common = {"type": "scatter", "mode": "markers", "hovertemplate": "%{text}<extra></extra>"}
    return [
        common | {"name": "kernel", "meta": "points", "x": [x for x, _, _ in sized],
                  "y": [y for _, y, _ in sized], "text": [t for _, _, t in sized]},
        common | {"name": "kernel gave 0", "meta": "zeros", "x": [x for x, _ in zeros],
                  "y": [0.34] * len(zeros), "yaxis": "y3", "text": [t for _, t in zeros],
                  "marker": {"symbol": "triangle-down", "size": 9}},
    ]  # fmt: skip


def _errors(a: Accuracy, guard: Saturation, left: float) -> dict[str, Any]:
    """Return the largest error as a step line over the regions of the tail."""
    zero = guard.zero_needed_from
    spans = {
        Region.ZERO: (left, zero),
        Region.DEEP_TAIL: (zero, max(zero, DEEP_TAIL_FROM)),
        Region.TAIL: (max(zero, DEEP_TAIL_FROM), max(zero, TAIL_FROM)),
        Region.SHOULDER: (max(zero, TAIL_FROM), -1.0),
    }
    largest = {r.region: r.max_error_ulp for r in a.regions if r.count}
    xs: list[float] = []
    ys: list[float] = []
    for region, (start, end) in spans.items():
        if region in largest and end > start:
            xs += [start, end]
            ys += [max(largest[region], 1e-3)] * 2
    texts = [f"{figure(y)} ULP" for y in ys]
    return {"type": "scatter", "mode": "lines", "name": "largest error", "meta": "band",
            "x": xs, "y": ys, "yaxis": "y2", "fill": "tozeroy", "text": texts,
            "hovertemplate": "%{text}<extra></extra>"}  # fmt: skip


def _layout(guard: Saturation, left: float, sizes: list[float]) -> dict[str, Any]:
    marks = [(guard.zero_needed_from, "0 is right below", 1)]
    if guard.zero_from is not None:
        marks.append((guard.zero_from, "gives 0 below", 0))
    return {
        "xaxis": {"title": {"text": "x"}, "range": [left, -1.0], "anchor": "y2"},
        "yaxis": {"title": {"text": "log10 |f(x)|"}, "domain": [0.42, 1.0]},
        "yaxis2": log_axis("max ULP", sizes) | {"domain": [0.0, 0.3]},
        "yaxis3": {"overlaying": "y", "range": [0.3, 1.0], "visible": False},
        "shapes": [threshold(x) for x, _, _ in marks],
        "annotations": [note(x, text, row) for x, text, row in marks],
    }  # fmt: skip
