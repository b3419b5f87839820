"""Several kernels of one operator and format on the same axes."""

from __future__ import annotations

from typing import Any

from gelu_verify.report.numbers import figure
from gelu_verify.report.rows import REGION_KEYS, REGION_NAMES
from gelu_verify.report.site.entry import Entry
from gelu_verify.report.site.figures.figure import Figure, log_axis, plain, threshold

#: Below this an error is drawn on the lower edge: a logarithmic axis has no 0.
_LEAST = 2.0**-8
#: A bar of error over bound ends here: what holds its bound stays in sight beside what does not.
_MOST = 2.0
_DASHES = ("solid", "dash", "dot", "dashdot")


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
         "y": [plain(name) for name in shown], "x": [min(ratio, _MOST) for ratio in ratios],
         "text": [figure(ratio) for ratio in ratios], "textposition": "outside",
         "cliponaxis": False}
    ]  # fmt: skip
    layout = {
        "xaxis": {"title": {"text": "largest error/bound"}, "range": [0, 1.1 * _MOST]},
        "yaxis": {"autorange": "reversed", "automargin": True},
        "bargap": 0.35,
        "height": 110 + 26 * len(shown),
        "shapes": [threshold(1.0)],
    }
    table = [(name, figure(ratio)) for name, ratio in zip(shown, ratios, strict=True)]
    caption = (
        "Largest error over the derived bound of its element; beyond 1 the bound is broken. A bar "
        f"ends at {_MOST:g} where there is more: the number beside it is what was measured."
    )
    return Figure(key, "Error over bound", caption, data, layout, ("kernel", "error/bound"), table)
