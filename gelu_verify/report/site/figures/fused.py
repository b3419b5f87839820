"""A fused operator against its derived bounds: by term, by length of the sum, by case."""

from __future__ import annotations

import re
from typing import Any

from gelu_verify.records import BoundAccuracy, KernelResult
from gelu_verify.report.numbers import figure
from gelu_verify.report.site.figures.figure import Figure, edge, level, log_axis, plain

#: Below this a ratio is drawn on the lower edge.
_LEAST = 1e-3
#: The size that a case's sums grow with, by operator: its letter in a case and what it is.
_LENGTHS = {
    "linear_gelu": ("k", "K, terms of a sum"),
    "attention": ("l", "L, keys"),
    "conv_relu_pool": ("c", "C, channels: sums of 9·C terms"),
    "layernorm_gelu": ("n", "N, columns of a row"),
    "bias_gelu": ("n", "N, columns of a row"),
    "geglu": ("n", "N, columns of a row"),
}


def quantities(result: KernelResult) -> list[tuple[str, BoundAccuracy]]:
    """Return the result and each gradient, by name, with its figures."""
    found = [("result", result.bound)] if result.bound else []
    return found + [(f"gradient of {g.argument}", g.bound) for g in result.gradients]


def terms(result: KernelResult) -> Figure | None:
    """Return, at the worst element of each quantity, the bound by term and the error beside it."""
    found = [(name, b.worst) for name, b in quantities(result) if b.worst and b.worst.bound > 0]
    if not found:
        return None
    every = list(dict.fromkeys(term for _, worst in found for term in worst.terms))
    names = [plain(name) for name, _ in found]
    most = edge([worst.ratio for _, worst in found])
    data: list[dict[str, Any]] = [
        {
            "type": "bar",
            "orientation": "h",
            "name": plain(term),
            "y": names,
            "x": [worst.terms.get(term, 0.0) / worst.bound for _, worst in found],
        }
        for term in every
    ]
    data.append(
        {
            "type": "scatter",
            "mode": "markers",
            "name": "error",
            "meta": "mark",
            "y": names,
            "x": [min(worst.ratio, most) for _, worst in found],
            "marker": {"symbol": "diamond", "size": 11},
        }
    )
    layout = {
        "barmode": "stack",
        "bargap": 0.35,
        "xaxis": {"title": {"text": "share of the bound"}, "rangemode": "tozero"},
        "yaxis": {"autorange": "reversed", "automargin": True},
    }
    rows = [
        (name, worst.case, figure(worst.error), figure(worst.bound), figure(worst.ratio),
         ", ".join(f"{t} {size / worst.bound:.1%}" for t, size in worst.terms.items()))
        for name, worst in found
    ]  # fmt: skip
    caption = (
        "The worst element of each quantity: its bound by source of error, and its error (the "
        "diamond; at the right edge if it is infinite). Right of 1 the bound is broken."
    )
    header = ("quantity", "case", "error", "bound", "error/bound", "bound by term")
    return Figure("terms", "Error and bound by term", caption, data, layout, header, rows)


def ladder(result: KernelResult) -> Figure | None:
    """Return the largest error over bound of every case, against the length of its sums."""
    if result.operator not in _LENGTHS:
        return None
    letter, name = _LENGTHS[result.operator]
    data: list[dict[str, Any]] = []
    climbs: list[dict[str, Any]] = []
    rows: list[tuple[str, ...]] = []
    most = edge([c.max_ratio for _, bound in quantities(result) for c in bound.by_case])
    for number, (quantity, bound) in enumerate(quantities(result)):
        cases = [(_size(c.case, letter), c) for c in bound.by_case]
        shown = [(size, c) for size, c in cases if size and c.max_ratio == c.max_ratio]
        data.append(
            {
                "type": "scatter",
                "mode": "markers",
                "name": plain(quantity),
                "meta": f"kernel-{number}",
                "opacity": 0.6,
                "x": [size for size, _ in shown],
                "y": [min(max(c.max_ratio, _LEAST), most) for _, c in shown],
                "text": [plain(c.case) for _, c in shown],
                "hovertemplate": "%{text}: %{y:.3g}<extra></extra>",
            }
        )
        by_size = _by_size([(size, c.max_ratio) for size, c in shown if size])
        climbs.append(
            {
                "type": "scatter",
                "mode": "lines",
                "name": plain(f"{quantity}, largest"),
                "meta": f"kernel-{number}",
                "x": list(by_size),
                "y": [min(max(*ratios, _LEAST), most) for ratios in by_size.values()],
                "hoverinfo": "skip",
                "showlegend": False,
            }
        )
        rows += [
            (quantity, f"{size:,}", str(len(ratios)), figure(max(ratios)))
            for size, ratios in by_size.items()
        ]
    if not any(trace["x"] for trace in data):
        return None
    layout = {
        "xaxis": log_axis(name, [x for trace in data for x in trace["x"]]),
        "yaxis": log_axis("largest error/bound", [y for trace in data for y in trace["y"]]),
        "shapes": [level(1.0)],
    }
    caption = (
        "Each mark is a case: the largest error over bound of its elements, against the size that "
        "its sums grow with; ratios below 0.001 lie on the lower edge, infinite ones on the upper. "
        "A line joins the largest of each size. Above the dotted line, at 1, the bound is broken."
    )
    header = ("quantity", name, "cases", "largest error/bound")
    title = "Error/bound by length"
    return Figure("ladder", title, caption, [*data, *climbs], layout, header, rows)


def _size(case: str, letter: str) -> int | None:
    found = re.search(rf"(?:^|,){letter}=(\d{{1,12}})(?:,|$)", case)
    return int(found[1]) if found else None


def _by_size(cases: list[tuple[int, float]]) -> dict[int, list[float]]:
    """Return the ratios of the cases of each size, sizes ascending."""
    found: dict[int, list[float]] = {}
    for size, ratio in sorted(cases):
        found.setdefault(size, []).append(ratio)
    return found
