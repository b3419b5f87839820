"""How the sizes of all errors are distributed: histogram and cumulative share."""

from __future__ import annotations

import math
from itertools import accumulate
from typing import Any

from gelu_verify.baseline import Measurement
from gelu_verify.measure import histogram as bins
from gelu_verify.records import Accuracy
from gelu_verify.report.numbers import figure
from gelu_verify.report.site.figures.figure import Figure, log_axis

_WIDTH = 1.0 / bins.BINS_PER_OCTAVE


def histogram(a: Accuracy) -> Figure:
    """Return the counts of log2 error, a bar a quarter of an octave."""
    indices = sorted(a.histogram)
    data: list[dict[str, Any]] = [
        {
            "type": "bar",
            "name": "inputs",
            "x": [_middle(i) for i in indices],
            "y": [a.histogram[i] for i in indices],
            "text": [f"{_range(i)}: {a.histogram[i]:,}" for i in indices],
            "textposition": "none",
            "hovertemplate": "%{text}<extra></extra>",
            "width": _WIDTH,
        }
    ]
    layout = {
        "xaxis": {"title": {"text": "log2 of the error in ULP"}},
        "yaxis": log_axis("inputs", list(a.histogram.values())),
    }
    small, large = a.histogram.get(0, 0), a.histogram.get(bins.BIN_COUNT - 1, 0)
    caption = (
        f"All {a.count:,} errors by size. The first bar holds the {small:,} below 2^{bins.LOWEST} "
        f"ULP, exact results among them"
        + (f"; the last the {large:,} of 2^{bins.HIGHEST} ULP and more." if large else ".")
    )
    rows = [(_range(i), f"{a.histogram[i]:,}") for i in indices]
    return Figure(
        "histogram", "Histogram of log2 error", caption, data, layout, ("error", "inputs"), rows
    )


def cumulative(a: Accuracy, before: Measurement | None) -> Figure | None:
    """Return the share of inputs with at most an error, and the baseline's quantiles on it."""
    if not a.histogram:
        return None
    indices = sorted(a.histogram)
    total = sum(a.histogram.values())
    shares = [n / total for n in accumulate(a.histogram[i] for i in indices)]
    data = [
        {
            "type": "scatter",
            "mode": "lines",
            "name": "now",
            "line": {"shape": "hv"},
            # From no input at all, so that a first bin with most of them shows as a step.
            "x": [_upper(i) for i in (indices[0], *indices)],
            "y": [0.0, *(round(share, 9) for share in shares)],
        }
    ]
    old = before.elementwise if before else None
    if old:
        known = [(q, v) for q, v in sorted(old.quantiles.items()) if 0.0 < v < math.inf]
        data.append(
            {
                "type": "scatter",
                "mode": "markers",
                "name": "baseline's quantiles",
                "x": [math.log2(v) for _, v in known],
                "y": [float(q) for q, _ in known],
                "marker": {"symbol": "diamond-open", "size": 10},
            }
        )
    layout = {
        "xaxis": {"title": {"text": "log2 of the error in ULP"}},
        "yaxis": {"title": {"text": "share of inputs"}, "range": [0, 1.03], "tickformat": ".0%"},
    }
    told = "There is no baseline."
    if old:
        told = "The diamonds are the quantiles of the baseline"
        told += "." if old.inputs_digest == a.inputs_digest else ", which is of other inputs."
    rows = [(q, figure(v), figure(old.quantiles.get(q)) if old else "-")
            for q, v in a.quantiles.items()]  # fmt: skip
    return Figure(
        "cdf", "Share of inputs by error",
        f"Share of inputs whose error is at most the size below; upper edges of the bins. {told}",
        data, layout, ("quantile", "now, ULP", "baseline, ULP"), rows,
    )  # fmt: skip


def _middle(index: int) -> float:
    return bins.LOWEST + (index - 0.5) * _WIDTH


def _upper(index: int) -> float:
    edge = bins.upper_edge(index)
    return round(math.log2(edge), 4) if math.isfinite(edge) else float(bins.HIGHEST)


def _range(index: int) -> str:
    if index <= 0:
        return f"below 2^{bins.LOWEST} ULP"
    lower = bins.upper_edge(index - 1)
    upper = bins.upper_edge(index)
    return f"{lower:.4g} to {upper:.4g} ULP" if math.isfinite(upper) else f"{lower:.4g} ULP or more"
