"""What a figure is: traces for plotly, a sentence for who cannot see it, and a table behind it."""

from __future__ import annotations

import html
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Figure:
    """One figure of a page.

    key: its name within the page; caption: what it shows, in sentences; data, layout: plotly's
    JSON, colours left to the page; header, rows: the same figures as a table, empty for none.
    """

    key: str
    title: str
    caption: str
    data: list[dict[str, Any]]
    layout: dict[str, Any] = field(default_factory=dict)
    header: tuple[str, ...] = ()
    rows: Sequence[tuple[str, ...]] = ()

    @property
    def spec(self) -> dict[str, Any]:
        """The content of ``Plotly.newPlot``; what is no number in JSON is a gap."""
        spec: dict[str, Any] = _finite({"data": self.data, "layout": self.layout})
        return spec


def _finite(part: Any) -> Any:
    """Return a tree of JSON with None for every infinity and NaN."""
    if isinstance(part, dict):
        return {key: _finite(value) for key, value in part.items()}
    if isinstance(part, list | tuple):
        return [_finite(value) for value in part]
    return None if isinstance(part, float) and not math.isfinite(part) else part


def edge(ratios: Sequence[float]) -> float:
    """Return where an infinite ratio is drawn: above 1 and all finite ones."""
    return 10.0 * max([ratio for ratio in ratios if math.isfinite(ratio)] + [1.0])


def plain(text: str) -> str:
    """Return text that plotly shows as it is: its labels understand some HTML."""
    return html.escape(text, quote=False)


def log_axis(title: str, values: Sequence[float]) -> dict[str, Any]:
    """Return a logarithmic axis for values above 0, with six ticks or so.

    At powers of ten; where the values span less than two of them, at 1, 2 and 5 of each.
    """
    known = [v for v in values if 0.0 < v < math.inf] or [1.0]
    low, high = min(known) / 1.5, max(known) * 1.5
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    step = math.ceil(math.log10(high / low) / 6)
    ticks = [10.0**power for power in powers if power % step == 0]
    if high / low < 300.0:
        ticks = [factor * 10.0**power for power in powers for factor in (1.0, 2.0, 5.0)]
    shown = [tick for tick in ticks if low <= tick <= high]
    if len(shown) < 2:
        shown = sorted({*shown, *(float(f"{end:.3g}") for end in (min(known), max(known)))})
    return {
        "title": {"text": title},
        "type": "log",
        "tickvals": shown,
        "ticktext": [_tick(tick) for tick in shown],
    }


def wide_log_axis(title: str, values: Sequence[float]) -> dict[str, Any]:
    """Return a logarithmic axis that spans a factor of four or more: what is alike looks alike."""
    low, high = math.log10(min(values)), math.log10(max(values))
    reach = max(0.6 * (high - low), math.log10(2.0))
    middle = (low + high) / 2
    ends = [middle - reach, middle + reach]
    return log_axis(title, [10.0**end for end in ends]) | {"range": ends}


def _tick(size: float) -> str:
    if 1e-3 <= size < 1e4:
        return f"{size:g}"
    power = math.floor(math.log10(size) + 1e-9)
    factor = f"{size / 10.0**power:.3g}"
    return ("" if factor == "1" else f"{factor}·") + f"10<sup>{power}</sup>"


def threshold(at: float, axis: str = "x") -> dict[str, Any]:
    """Return a dotted vertical line over the whole height of a figure."""
    return {
        "type": "line",
        "xref": axis,
        "yref": "paper",
        "x0": at,
        "x1": at,
        "y0": 0,
        "y1": 1,
        "line": {"dash": "dot", "width": 1.5},
    }


def level(at: float) -> dict[str, Any]:
    """Return a dotted horizontal line over the whole width of a figure."""
    line = {"dash": "dot", "width": 1.5}
    ends = {"x0": 0, "x1": 1, "y0": at, "y1": at}
    return {"type": "line", "xref": "paper", **ends, "line": line}


def note(at: float, text: str, row: int = 0, axis: str = "x") -> dict[str, Any]:
    """Return the label of a vertical line, at the top; ``row`` keeps two of them apart."""
    return {
        "x": at,
        "xref": axis,
        "y": 1.0 - 0.07 * row,
        "yref": "paper",
        "text": plain(text),
        "showarrow": False,
        "xanchor": "left",
        "yanchor": "top",
        "xshift": 3,
        "font": {"size": 11},
    }
