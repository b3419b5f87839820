"""Accuracy against speed, where kernels of one operator and format were timed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from gelu_verify.operators import OPERATORS
from gelu_verify.records import Speed
from gelu_verify.report import rows
from gelu_verify.report.numbers import figure
from gelu_verify.report.site.entry import Entry
from gelu_verify.report.site.figures.figure import Figure, edge, plain, wide_log_axis

#: Below this an error is drawn on the lower edge: a logarithmic axis has no 0.
_LEAST = 2.0**-8
_SYMBOLS = ("circle", "square", "diamond", "triangle-up", "cross", "x", "star", "triangle-down")


@dataclass(frozen=True)
class _Timed:
    """A kernel on a device. label: its own; name: with formula and device; size: its error."""

    label: str
    name: str
    speed: Speed
    size: float


def by_speed(entries: list[Entry], key: str) -> Figure | None:
    """Return accuracy against time, a mark a kernel; None where fewer than two were timed.

    entries: of one operator and format. A kernel that was measured more than once has its largest
    error, over all inputs that it was seen at, and its shortest time.
    """
    timed = _timed(entries)
    if len(timed) < 2:
        return None
    in_ulp = entries[0].result.operator in OPERATORS
    unit = "largest error in ULP" if in_ulp else "largest error/bound"
    most = edge([t.size for t in timed])
    layout = {
        "xaxis": wide_log_axis("time in ns an element", [t.speed.element_ns for t in timed]),
        "yaxis": wide_log_axis(unit, [_drawn(t, most) for t in timed]),
    }
    table = [
        (t.name, figure(t.size), figure(t.speed.element_ns), figure(t.speed.moved_gb_per_s),
         t.speed.case, str(t.speed.calls))
        for t in timed
    ]  # fmt: skip
    methods = dict.fromkeys(f"{t.speed.method}." for t in timed)
    caption = (
        f"The {unit} against the median time an element of the result, both logarithmic: down and "
        f"to the left is better. {' '.join(methods)}"
    )
    header = ("kernel", unit, "ns an element", "GB/s", "case", "calls")
    data = [_mark(t, unit, number, most) for number, t in enumerate(timed)]
    return Figure(key, "Accuracy against speed", caption, data, layout, header, table)


def _drawn(t: _Timed, most: float) -> float:
    """Return where the size of an error is drawn: what is infinite at the upper edge."""
    return min(max(t.size, _LEAST), most)


def _mark(t: _Timed, unit: str, number: int, most: float) -> dict[str, Any]:
    return {
        "type": "scatter",
        "mode": "markers+text",
        "name": plain(t.name),
        "meta": f"kernel-{number % 8}",
        "marker": {"size": 12, "symbol": _SYMBOLS[number % len(_SYMBOLS)]},
        "x": [t.speed.element_ns],
        "y": [_drawn(t, most)],
        "text": [plain(t.label)],
        "textposition": "top center",
        "hovertemplate": f"{plain(rows.speed(t.speed))}<br>{unit} {figure(t.size)}<extra></extra>",
    }


def _timed(entries: list[Entry]) -> list[_Timed]:
    groups: dict[tuple[str, str, str], list[Entry]] = {}
    for entry in entries:
        r = entry.result
        groups.setdefault((r.label, r.formula, entry.device), []).append(entry)
    found = []
    for (label, formula, device), group in groups.items():
        speeds = [e.result.speed for e in group if e.result.speed]
        sizes = [size for e in group if (size := _size(e)) is not None]
        if speeds and sizes:
            speed = min(speeds, key=lambda one: one.element_ns)
            found.append(_Timed(label, f"{label} ({formula}), {device}", speed, max(sizes)))
    return found


def _size(entry: Entry) -> float | None:
    """Return the largest error in ULP; of an operator with sums, over its bound."""
    r = entry.result
    if r.operator in OPERATORS:
        return r.accuracy.max_error_ulp if r.accuracy else None
    return r.bound.max_ratio if r.bound else None
