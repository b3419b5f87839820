"""The figures of a site as SVG or PNG files, for papers and pull requests; no browser is needed.

What a page gives to plotly is drawn by Matplotlib here: of plotly's language, what
:mod:`gelu_verify.report.site.figures` uses.
"""

from __future__ import annotations

import html
import math
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gelu_verify.errors import UnavailableError, UsageError, unknown_name
from gelu_verify.report.site import pages, training
from gelu_verify.report.site.content import Content
from gelu_verify.report.site.figures.figure import Figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes

KINDS = ("svg", "png")
_SIZE_INCHES = (8.0, 4.2)
_MARKERS = {"diamond": "D", "diamond-open": "D", "triangle-down": "v"}
_COLORS = {f"kernel-{i}": f"C{i}" for i in range(8)} | {
    "band": "#2563a8", "mean": "#b0540a", "points": "#b3211f", "zeros": "#b3211f",
    "exact": "#2563a8", "mark": "#1c2126",
}  # fmt: skip


def require_known(kind: str | None) -> None:
    """Raise a usage error for a kind of file that is not written."""
    if kind is not None and kind not in KINDS:
        raise unknown_name("figures", kind, KINDS)


def write(content: Content, folder: Path, kind: str) -> int:
    """Write every figure of every result's page and of the trainings to a folder; return how many.

    kind: svg or png. Raises :class:`UnavailableError` without Matplotlib.
    """
    shown = [(e.slug, e.title, pages.figures(e)) for e in content.entries]
    trainings = training.shown(content.trainings)
    shown += [(f"training.{one.slug}", one.title, one.figures) for one in trainings]
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for slug, title, figures in shown:
            for figure in figures:
                draw(figure, title, folder / f"{slug}.{figure.key}.{kind}")
    except OSError as fault:
        raise UsageError(f"output: got {folder}, {fault.strerror}. Choose another place.") from None
    return sum(len(figures) for _, _, figures in shown)


def draw(figure: Figure, title: str, path: Path) -> None:
    """Write one figure; the format is the path's ending."""
    try:
        import matplotlib.figure
    except ImportError:
        raise UnavailableError(
            "report: got no matplotlib, expected the extra 'report'. "
            "Run: pip install 'gelu_verify[report]'."
        ) from None
    canvas = matplotlib.figure.Figure(_SIZE_INCHES, layout="constrained")
    # A dollar sign in a name begins no formula.
    canvas.suptitle(f"{figure.title}: {title}".replace("$", r"\$"), fontsize=9)
    axes = _axes(canvas, figure.layout)
    for before, trace in zip([None, *figure.data], figure.data, strict=False):
        _trace(axes[trace.get("yaxis", "y")], trace, before)
    main = axes["y"]
    _frame(main, figure.layout, axes["x"])
    if main.get_legend_handles_labels()[0]:
        main.legend(fontsize=7, loc="best")
    # Without a date the same figures give the same file.
    metadata = {"Date": None} if path.suffix == ".svg" else {}
    canvas.savefig(path, dpi=150, metadata=metadata)


def _axes(canvas: Any, layout: dict[str, Any]) -> dict[str, Axes]:
    """Return the axes by plotly's names, and under x the one that carries the axis of x."""
    if "yaxis2" not in layout:
        only = canvas.subplots()
        return {"y": only, "x": only}
    upper, lower = canvas.subplots(2, 1, sharex=True, height_ratios=(2, 1))
    _axis(lower, "y", layout["yaxis2"])
    overlay = upper.twinx()
    overlay.set_ylim(*layout["yaxis3"]["range"])
    overlay.set_axis_off()
    return {"y": upper, "y2": lower, "y3": overlay, "x": lower}


def _frame(main: Axes, layout: dict[str, Any], below: Axes) -> None:
    _axis(main, "y", layout.get("yaxis", {}))
    _axis(below, "x", layout.get("xaxis", {}))
    for shape in layout.get("shapes", ()):
        if shape.get("yref") == "paper":
            main.axvline(shape["x0"], linestyle=":", linewidth=1, color="#59636e")
        else:
            main.axhline(shape["y0"], linestyle=":", linewidth=1, color="#59636e")
    for note in layout.get("annotations", ()):
        main.annotate(
            _text(note["text"]), (note["x"], note["y"] - 0.02),
            xycoords=main.get_xaxis_transform(), fontsize=6, va="top",
            ha=note.get("xanchor", "left"),
        )  # fmt: skip


def _axis(axes: Axes, which: str, spec: dict[str, Any]) -> None:
    """Give an axis its label, scale, ticks and range."""
    label = _text(spec.get("title", {}).get("text", ""))
    axes.set(**{f"{which}label": label})
    if spec.get("type") == "log":
        axes.set(**{f"{which}scale": "log"})
    axis = axes.xaxis if which == "x" else axes.yaxis
    if "tickvals" in spec:
        axis.set_ticks(spec["tickvals"], [_text(t) for t in spec["ticktext"]])
    if "range" in spec:
        is_log = spec.get("type") == "log"  # there plotly means exponents
        axes.set(**{f"{which}lim": [10.0**e if is_log else e for e in spec["range"]]})
    if spec.get("autorange") == "reversed":
        axis.set_inverted(True)
    axis.label.set_fontsize(8)
    axes.tick_params(labelsize=7)


def _trace(axes: Axes, trace: dict[str, Any], before: dict[str, Any] | None) -> None:
    name = _text(trace.get("name", ""))
    color = _COLORS.get(trace.get("meta", ""))
    xs, ys = trace["x"], trace["y"]
    if trace["type"] == "bar":
        _bars(axes, trace, name)
    elif "lines" not in trace["mode"]:
        marker = _MARKERS.get(trace.get("marker", {}).get("symbol", ""), "o")
        axes.plot(xs, _numbers(ys), marker, markersize=4, label=name, color=color)
    else:
        style: Any = "steps-post" if trace.get("line", {}).get("shape") == "hv" else "default"
        shown = name if trace.get("showlegend", True) else None
        mark = "o" if "markers" in trace["mode"] else None
        axes.plot(xs, _numbers(ys), drawstyle=style, label=shown, color=color, marker=mark,
                  linewidth=1.2, markersize=4)  # fmt: skip
        if "fill" in trace:
            edge = before["y"] if before and trace["fill"] == "tonexty" else [0.0] * len(ys)
            axes.fill_between(xs, _numbers(ys), _numbers(edge), alpha=0.15, color=color)


def _bars(axes: Axes, trace: dict[str, Any], name: str) -> None:
    if trace.get("orientation") != "h":
        axes.bar(trace["x"], trace["y"], width=trace.get("width", 0.8), label=name)
        return
    rows = [_text(row) for row in trace["y"]]
    # Bars of one name lie after each other, as plotly stacks them.
    before: list[Any] = list(axes.containers)
    starts = [sum(float(bars.datavalues[i]) for bars in before) for i in range(len(rows))]
    axes.barh(rows, trace["x"], left=starts, label=name)


def _numbers(values: list[Any]) -> list[float]:
    return [math.nan if value is None else value for value in values]


def _text(label: str) -> str:
    """Return a label of plotly in Matplotlib's language: powers as formulas, entities as marks."""
    plain = html.unescape(label.replace("$", r"\$"))
    return re.sub(r"([0-9]+)<sup>(-?\d+)</sup>", r"$\1^{\2}$", plain)
