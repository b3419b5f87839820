"""Several kernels of one operator and format on the same axes."""

from __future__ import annotations

from typing import Any

from gelu_verify.records import Speed
from gelu_verify.report import rows
from gelu_verify.report.numbers import figure
from gelu_verify.report.rows import REGION_KEYS, REGION_NAMES
from gelu_verify.report.site.entry import Entry
from gelu_verify.report.site.figures.figure import Figure, log_axis, plain, wide_log_axis

#: Below this an error is drawn on the lower edge: a logarithmic axis has no 0.
_LEAST = 2.0**-8
_DASHES = ("solid", "dash", "dot", "dashdot")
_SYMBOLS = ("circle", "square", "diamond", "triangle-up", "cross", "x", "star", "triangle-down")


def names(entries: list[Entry]) -> list[str]:
    """Return a name for each result that no other has: kernel and device, then what differs."""
    found = [f"{e.result.label} ({e.result.formula}), {e.device}" for e in entries]
    for differing in (_depth, lambda e: e.source, lambda e: e.slug):
        found = [
            name if found.count(name) == 1 else f"{name}, {differing(entry)}"
            for name, entry in zip(found, entries, strict=True)
        ]
    return found


def _depth(entry: Entry) -> str:
    """Return at which inputs, or in how many cases, a result was measured."""
    r = entry.result
    return r.accuracy.sweep if r.accuracy else f"{r.bound.cases if r.bound else 0} cases"


def by_region(entries: list[Entry], key: str) -> Figure | None:
    """Return the largest error by region, a line a kernel; None where fewer than two have any."""
    measured = [e for e in entries if e.result.accuracy]
    if len(measured) < 2:
        return None
    kernels = list(dict.fromkeys((e.result.label, e.result.formula) for e in measured))
    devices = list(dict.fromkeys(e.device for e in measured))
    data: list[dict[str, Any]] = []
    table: list[tuple[str, ...]] = []
    for name, entry in zip(names(measured), measured, strict=True):
        assert entry.result.accuracy is not None
        largest = {r.region: r.max_error_ulp for r in entry.result.accuracy.regions if r.count}
        sizes = [largest.get(name) for name in REGION_KEYS]
        data.append(
            {
                "type": "scatter",
                "mode": "lines+markers",
                "name": plain(name),
                # A color a kernel, a dash a device.
                "meta": f"kernel-{kernels.index((entry.result.label, entry.result.formula)) % 8}",
                "line": {"dash": _DASHES[devices.index(entry.device) % len(_DASHES)]},
                "x": list(REGION_NAMES),
                "y": [None if size is None else max(size, _LEAST) for size in sizes],
                "text": [f"{figure(size)} ULP" for size in sizes],
                "hovertemplate": "%{text}<extra>%{fullData.name}</extra>",
            }
        )
        table.append((name, *(figure(size) for size in sizes)))
    layout = {
        "yaxis": log_axis("largest error in ULP", [y for t in data for y in t["y"] if y]),
        "legend": {"orientation": "v", "x": 1.02, "y": 1, "xanchor": "left", "yanchor": "top"},
        "height": max(400, 90 + 20 * len(measured)),
    }  # fmt: skip
    caption = "Largest error in ULP of the format by region of x, on one axis; a line a kernel."
    header = ("kernel", *REGION_NAMES)
    return Figure(key, "Largest error by region", caption, data, layout, header, table)


def by_bound(entries: list[Entry], key: str) -> Figure | None:
    """Return the largest error over bound, a bar a kernel; None where fewer than two have any."""
    measured = [e for e in entries if e.result.bound]
    if len(measured) < 2:
        return None
    shown = names(measured)
    ratios = [e.result.bound.max_ratio for e in measured if e.result.bound]
    data: list[dict[str, Any]] = [
        {"type": "bar", "orientation": "h", "name": "error/bound",
         "y": [plain(name) for name in shown], "x": ratios}
    ]  # fmt: skip
    layout = {
        "xaxis": {"title": {"text": "largest error/bound"}, "rangemode": "tozero"},
        "yaxis": {"autorange": "reversed", "automargin": True},
        "bargap": 0.35,
        "height": 110 + 26 * len(shown),
        "shapes": [{"type": "line", "yref": "paper", "x0": 1, "x1": 1, "y0": 0, "y1": 1,
                    "line": {"dash": "dot", "width": 1.5}}],
    }  # fmt: skip
    table = [(name, figure(ratio)) for name, ratio in zip(shown, ratios, strict=True)]
    caption = "Largest error over the derived bound of its element; beyond 1 the bound is broken."
    return Figure(key, "Error over bound", caption, data, layout, ("kernel", "error/bound"), table)


def by_speed(entries: list[Entry], key: str) -> Figure | None:
    """Return accuracy against time, a mark a kernel; None where fewer than two were timed.

    A kernel that was measured more than once has its largest error, over all inputs that it was
    seen at, and its shortest time.
    """
    kernels: dict[tuple[str, str, str], list[Entry]] = {}
    for entry in entries:
        r = entry.result
        kernels.setdefault((r.label, r.formula, entry.device), []).append(entry)
    timed = [(name, *found) for name, group in kernels.items() if (found := _timed(group))]
    if len(timed) < 2:
        return None
    every = list(kernels)
    unit = "largest error in ULP" if _in_ulp(entries) else "largest error/bound"
    data: list[dict[str, Any]] = [
        {
            "type": "scatter",
            "mode": "markers+text",
            "name": plain(f"{label} ({formula}), {device}"),
            "meta": f"kernel-{every.index((label, formula, device)) % 8}",
            "marker": {"size": 12, "symbol": _SYMBOLS[i % len(_SYMBOLS)]},
            "x": [speed.element_ns],
            "y": [max(size, _LEAST)],
            "text": [plain(label)],
            "textposition": "top center",
            "hovertemplate": f"{plain(rows.speed(speed))}<br>{unit} {figure(size)}<extra></extra>",
        }
        for i, ((label, formula, device), speed, size) in enumerate(timed)
    ]
    layout = {
        "xaxis": wide_log_axis("time in ns an element", [t["x"][0] for t in data]),
        "yaxis": wide_log_axis(unit, [t["y"][0] for t in data]),
    }
    table = [
        (f"{label} ({formula}), {device}", figure(size), figure(speed.element_ns),
         figure(speed.moved_gb_per_s), speed.case, str(speed.calls))
        for (label, formula, device), speed, size in timed
    ]  # fmt: skip
    caption = (
        f"The {unit} against the median time an element of the result, both logarithmic: down and "
        "to the left is better. "
        + " ".join(f"{method}." for method in dict.fromkeys(s.method for _, s, _ in timed))
    )
    header = ("kernel", unit, "ns an element", "GB/s", "case", "calls")
    return Figure(key, "Accuracy against speed", caption, data, layout, header, table)


def _in_ulp(entries: list[Entry]) -> bool:
    return any(entry.result.accuracy for entry in entries)


def _timed(group: list[Entry]) -> tuple[Speed, float] | None:
    """Return the shortest time of a kernel and its largest error; None without either."""
    speeds = [e.result.speed for e in group if e.result.speed]
    accuracies = [e.result.accuracy.max_error_ulp for e in group if e.result.accuracy]
    ratios = [e.result.bound.max_ratio for e in group if e.result.bound]
    sizes = accuracies or ratios
    if not speeds or not sizes:
        return None
    return min(speeds, key=lambda speed: speed.element_ns), max(sizes)
