"""Training with a kernel: loss curves, paired differences against their margins, gradients."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Sequence
from typing import Any

from gelu_verify.convergence.records import Arm, Convergence, Endpoint, Run
from gelu_verify.report.numbers import figure
from gelu_verify.report.site.figures.figure import Figure, level, log_axis, threshold

#: Drawn with a band over the seeds; the others as a line, which they share where all is well.
_BANDS = {Arm.REFERENCE: "band", Arm.KERNEL: "mean"}
_LINES = {Arm.NOISE: "points", Arm.EAGER: "mark"}
_NAMES = {
    Arm.EXACT64: "exact, float64",
    Arm.REFERENCE: "reference",
    Arm.EAGER: "torch's own",
    Arm.NOISE: "1 ULP of noise",
    Arm.KERNEL: "kernel",
}
#: How far the axis of differences reaches, in margins; what lies beyond is drawn at the edge.
_REACH = 3.0


def figures(found: Convergence) -> list[Figure]:
    """Return the figures of a record, those for which it has what they need."""
    every = (losses(found), differences(found), gradients(found))
    return [one for one in every if one]


def losses(found: Convergence) -> Figure | None:
    """Return the validation loss over the steps: mean, and smallest to largest over the seeds."""
    if not found.runs:
        return None
    data: list[dict[str, Any]] = []
    rows: list[tuple[str, ...]] = []
    for arm in Arm:
        curve = _over_seeds(found.runs, arm, lambda run: zip(run.steps, run.losses, strict=True))
        data += _banded(curve, arm)
        rows += [(_NAMES[arm], str(s), *(figure(v) for v in (low, mid, high)))
                 for s, low, mid, high in curve]  # fmt: skip
    caption = (
        f"Mean cross-entropy on the validation set, {found.task}: lines are means over "
        f"{len(found.seeds)} seeds, bands reach from the smallest to the largest."
    )
    layout = _steps_axis() | {"yaxis": log_axis("validation loss", _values(data))}
    header = ("arm", "step", "smallest", "mean", "largest")
    return Figure("losses", "Loss curves", caption, data, layout, header, rows)


def differences(found: Convergence) -> Figure | None:
    """Return kernel − reference of every seed and endpoint, in margins, with intervals."""
    if not found.endpoints:
        return None
    names = [e.name for e in found.endpoints]
    data: list[dict[str, Any]] = [
        _seeds("1 ULP of noise", "points", found.endpoints, lambda e: e.noise_differences),
        _seeds("kernel", "mean", found.endpoints, lambda e: e.differences),
    ]
    for index, e in enumerate(found.endpoints):
        low, high = (_clipped(v / e.margin) for v in (e.low, e.high))
        data.append(
            {"type": "scatter", "mode": "lines+markers", "meta": "band", "x": [low, high],
             "y": [e.name] * 2, "name": f"{100 - 200 * found.alpha:.0f} % interval of the mean",
             "showlegend": index == 0, "line": {"width": 3}}
        )  # fmt: skip
    layout = {
        "xaxis": {
            "title": {"text": "kernel − reference, in margins"},
            "range": [-_REACH * 1.05, _REACH * 1.05],
        },
        "yaxis": {"autorange": "reversed", "automargin": True},
        "height": 170 + 50 * len(names),
        "shapes": [threshold(at) for at in (-1.0, 1.0)],
    }
    caption = (
        "Differences from the reference arm of the same seed, over the margin (dotted): equivalent "
        "where the interval of the mean lies between the lines, different where it lies beyond. "
        f"What is beyond {_REACH:g} margins is drawn at the edge."
    )
    header = ("endpoint", "mean", "low", "high", "margin")
    rows = [(e.name, *(f"{v:+.3g}" for v in (e.mean, e.low, e.high)), f"±{e.margin:.3g}")
            for e in found.endpoints]  # fmt: skip
    return Figure(
        "differences", "Paired differences against the margin", caption, data, layout, header, rows
    )


def gradients(found: Convergence) -> Figure | None:
    """Return the gradient's relative error at the arm's own weights, over the steps."""
    if not found.runs:
        return None
    data: list[dict[str, Any]] = []
    rows: list[tuple[str, ...]] = []
    for arm in (Arm.REFERENCE, Arm.EAGER, Arm.NOISE, Arm.KERNEL):
        points = _over_seeds(
            found.runs, arm, lambda run: [(p.step, p.gradient_error) for p in run.probes]
        )
        data += _banded(points, arm)
        rows += [(_NAMES[arm], str(s), *(figure(v) for v in (low, mid, high)))
                 for s, low, mid, high in points]  # fmt: skip
    layout = _steps_axis() | {"yaxis": log_axis("relative error of the gradient", _values(data))}
    margin = next((e.margin for e in found.endpoints if e.name == "gradient error"), None)
    told = ""
    if margin is not None:
        layout["shapes"] = [level(margin)]
        told = f" The dotted line is the margin, {margin:.2g}."
    caption = (
        "‖gradient − exact‖ / ‖exact‖, the exact one in float64 at the arm's own weights: lines "
        f"are means over the seeds, bands reach from the smallest to the largest.{told}"
    )
    header = ("arm", "step", "smallest", "mean", "largest")
    return Figure("gradients", "Gradient error over steps", caption, data, layout, header, rows)


_Curve = list[tuple[int, float, float, float]]


def _over_seeds(runs: Sequence[Run], arm: Arm, points: Callable[[Run], Any]) -> _Curve:
    """Return step, smallest, mean and largest of the finite values over an arm's seeds."""
    by_step: dict[int, list[float]] = {}
    for run in runs:
        for step, value in points(run) if run.arm is arm else ():
            if math.isfinite(value):
                by_step.setdefault(step, []).append(value)
    return [(s, min(v), statistics.fmean(v), max(v)) for s, v in sorted(by_step.items())]


def _banded(curve: _Curve, arm: Arm) -> list[dict[str, Any]]:
    """Return an arm's line, with a band where it has one."""
    if not curve or arm not in _BANDS | _LINES:
        return []
    steps = [point[0] for point in curve]
    edge = {"type": "scatter", "mode": "lines", "x": steps, "showlegend": False,
            "hoverinfo": "skip", "line": {"width": 0}}  # fmt: skip
    line = {"type": "scatter", "mode": "lines", "name": _NAMES[arm], "x": steps,
            "y": [mean for _, _, mean, _ in curve]}  # fmt: skip
    if arm in _LINES:
        return [line | {"meta": _LINES[arm], "line": {"dash": "dot"}}]
    meta = {"meta": _BANDS[arm]}
    return [
        edge | meta | {"y": [low for _, low, _, _ in curve]},
        edge | meta | {"y": [high for _, _, _, high in curve], "fill": "tonexty"},
        line | meta,
    ]


def _seeds(
    name: str, meta: str, endpoints: Sequence[Endpoint], of: Callable[[Endpoint], tuple[float, ...]]
) -> dict[str, Any]:
    """Return the differences of every seed as markers, in margins."""
    points = [(_clipped(d / e.margin), e.name) for e in endpoints for d in of(e)]
    return {
        "type": "scatter",
        "mode": "markers",
        "name": name,
        "meta": meta,
        "x": [x for x, _ in points],
        "y": [y for _, y in points],
        "marker": {"symbol": "diamond-open" if meta == "points" else "circle", "size": 8},
    }


def _clipped(margins: float) -> float:
    return min(max(margins, -_REACH), _REACH)


def _steps_axis() -> dict[str, Any]:
    return {"xaxis": {"title": {"text": "step"}}}


def _values(data: Sequence[dict[str, Any]]) -> list[float]:
    return [y for trace in data for y in trace["y"]]
