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
        """The content of ``Plotly.newPlot``."""
        return {"data": self.data, "layout": self.layout}


def plain(text: str) -> str:
    """Return text that plotly shows as it is: its labels understand some HTML."""
    return html.escape(text, quote=False)


def log_axis(title: str, values: Sequence[float]) -> dict[str, Any]:
    """Return a logarithmic axis for values above 0: ticks at powers of ten, six or so."""
    logs = [math.log10(v) for v in values if 0.0 < v < math.inf]
    decades = max(logs, default=0.0) - min(logs, default=0.0)
    spec = {"title": {"text": title}, "type": "log", "exponentformat": "power"}
    return spec | ({"dtick": math.ceil(decades / 6)} if decades > 1.5 else {"dtick": "D2"})


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
