"""Error against x over the whole range, from what a sweep left of all its inputs: never a sample.

Bands come from summaries to which every input of the sweep was added; single points are only drawn
where the record names them, and the caption says which they are.
"""

from __future__ import annotations

import math
from typing import Any

from gelu_verify.measure.envelope import LOWEST
from gelu_verify.records import Accuracy, BinadeErrors, KernelResult
from gelu_verify.report.numbers import figure
from gelu_verify.report.site import axes
from gelu_verify.report.site.figures.figure import Figure, note, plain, threshold
from gelu_verify.report.site.figures.ranges import segments
from gelu_verify.report.site.points import named, swept

_HEADER = ("region", "count", "largest", "mean (signed)", "RMS")


def against_x(result: KernelResult) -> Figure | None:
    """Return the signed error by region of x: how far it reaches, its mean, and named points."""
    a, pieces = result.accuracy, segments(result)
    if a is None or not pieces:
        return None
    name = "lowest to highest error" if a.envelope else "largest error"
    data = [*_band(_bands(a, pieces), name), _points(a)]
    layout: dict[str, Any] = {
        "xaxis": axes.x_axis(),
        "yaxis": axes.error_axis(_largest(a)),
        **thresholds(result),
    }
    rows = [
        (r.region.replace("_", " "), f"{r.count:,}", figure(r.max_error_ulp),
         f"{r.mean_error_ulp:+.3g}", figure(r.rms_error_ulp))
        for r in a.regions
        if r.count
    ]  # fmt: skip
    how = (
        "in each binade it reaches from the lowest to the highest error there; the line is their "
        "mean"
        if a.envelope
        else "in each region it reaches as far as the largest error there, on either side; the "
        "line is the signed mean of the region"
    )
    caption = (
        f"Signed error against x. All {a.count:,} measured results lie within the band: {how}. "
        "Dots are the worst inputs that the table below lists."
    )
    return Figure("error", "Error against x", caption, data, layout, _HEADER, rows)


def by_binade(result: KernelResult) -> Figure | None:
    """Return the largest error of every binade of x; None where the sweep kept none."""
    a = result.accuracy
    if a is None or not a.binades:
        return None
    worst: dict[float, float] = {}
    for binade in a.binades:
        at = axes.column(binade.sign, binade.exponent)
        worst[at] = max(worst.get(at, 0.0), binade.max_error_ulp)
    data = [
        {
            "type": "bar",
            "name": "largest",
            "x": list(worst),
            "y": [round(axes.height(size), 4) for size in worst.values()],
            "text": [f"{figure(size)} ULP" for size in worst.values()],
            "textposition": "none",
            "hovertemplate": "%{text}<extra></extra>",
            "width": 1,
        }
    ]
    layout = {
        "xaxis": axes.x_axis(),
        "yaxis": axes.error_axis(max(worst.values()), signed=False),
        **thresholds(result),
    }
    rows = [
        (b.sign, str(b.exponent), figure(b.max_error_ulp))
        for b in a.binades
        if b.max_error_ulp > 0.0
    ]
    caption = (
        f"Largest error in each binade of x, over {a.inputs:,} inputs. The two outermost and the "
        "two innermost columns hold all binades beyond 2^16 and below 2^-24; the table has each."
    )
    return Figure(
        "binades", "Largest error by binade", caption, data, layout,
        ("sign", "exponent", "largest, ULP"), rows,
    )  # fmt: skip


def thresholds(result: KernelResult) -> dict[str, Any]:
    """Return lines and labels where the kernel starts to give 0 and x, and where that is right."""
    found = result.saturation
    if found is None:
        return {}
    same = "dy" if result.operator == "gelu_backward" else "x"
    marks = [
        (found.zero_from, "gives 0 below", 0),
        (found.zero_needed_from, "0 is right below", 1),
        (found.identity_from, f"gives {same} above", 0),
        (found.identity_needed_from, f"{same} is right above", 1),
    ]
    placed = [(axes.place(x), text, row) for x, text, row in marks if x is not None]
    return {
        "shapes": [threshold(at) for at, _, _ in placed],
        "annotations": [
            note(at, text, row) | ({"xanchor": "right", "xshift": -3} if at < 0 else {})
            for at, text, row in placed
        ],
    }


def _largest(a: Accuracy) -> float:
    sizes = [r.max_error_ulp for r in a.regions if r.count]
    return max((s for s in sizes if math.isfinite(s)), default=1.0)


def _bands(
    a: Accuracy, pieces: dict[str, list[tuple[float, float]]]
) -> list[tuple[float, float, float, float, float]]:
    """Return start, end, lowest, highest and mean error of each column: binades, or else regions.

    Of a region only the largest size is known: it is drawn on either side of 0.
    """
    if a.envelope:
        return [
            (*_column(b), b.lowest_error_ulp, b.highest_error_ulp, b.mean_error_ulp)
            for b in a.envelope
        ]
    return sorted(
        (start, end, -r.max_error_ulp, r.max_error_ulp, r.mean_error_ulp)
        for r in a.regions
        if r.count
        for start, end in pieces.get(r.region, ())
        if end > start
    )


def _column(binade: BinadeErrors) -> tuple[float, float]:
    """Return where a binade begins and ends on the axis; the innermost ones reach to 0."""
    at = axes.column(binade.sign, binade.exponent)
    if binade.exponent > LOWEST:
        return at - 0.5, at + 0.5
    return (at - 0.5, 0.0) if binade.sign == "-" else (0.0, at + 0.5)


def _band(bands: list[tuple[float, float, float, float, float]], name: str) -> list[dict[str, Any]]:
    """Return the edges of the band, the lower one filled up to the upper, and the mean."""
    lower, upper, mean = (
        _steps([(band[0], band[1], axes.height(band[which])) for band in bands])
        for which in (2, 3, 4)
    )
    edge = {"name": name, "line": {"width": 1}, "meta": "band"}
    return [
        upper | edge,
        lower | edge | {"fill": "tonexty", "showlegend": False},
        mean | {"name": "mean, signed", "line": {"width": 2}, "meta": "mean"},
    ]


def _steps(edge: list[tuple[float, float, float]]) -> dict[str, Any]:
    xs: list[float] = []
    ys: list[float] = []
    for start, end, size in edge:
        xs += [round(start, 4), round(end, 4)]
        ys += [round(size, 4)] * 2
    return {"type": "scatter", "mode": "lines", "x": xs, "y": ys, "hoverinfo": "skip"}


def _points(a: Accuracy) -> dict[str, Any]:
    shown = [
        (x, one)
        for one in named(a)
        if (x := swept(one.point)) is not None and math.isfinite(one.point.error_ulp)
    ]
    return {
        "type": "scatter",
        "mode": "markers",
        "name": "worst inputs",
        "meta": "points",
        "x": [round(axes.place(x), 4) for x, _ in shown],
        "y": [round(axes.height(one.point.error_ulp), 4) for _, one in shown],
        "text": [plain(f"{one.point.shown}: {one.point.error_ulp:+.4g} ULP") for _, one in shown],
        "hovertemplate": "%{text}<extra></extra>",
    }
