"""Routes: the same values through other layouts and sizes, judged by the same contract.

A difference in bits between two routes is a fact, reported with the error of both; it fails only
where one of the routes breaks the contract.
"""

from __future__ import annotations

import torch

from gelu_verify.checks.case import Case, Outcome
from gelu_verify.elements import Elements
from gelu_verify.formats import tensors
from gelu_verify.inputs.layouts import COLUMNS, ROUTES, ROW_ROUTES, Route
from gelu_verify.kernels.subject import KernelFailure, is_refusal, require_like
from gelu_verify.measure.summary import Sample
from gelu_verify.records import FindingStatus
from gelu_verify.report.numbers import figure

#: fp64 is compared in mpmath.
_POINTS = {64: 1024, 32: 8192, 16: 8192, 8: 8192}
#: A route of one value a call is tried on fewer; in an interpreter a call takes some 25 ms.
_CALLS = 64
_SIMULATED_CALLS = 16


def run(case: Case) -> Outcome:
    """Run every route on a spread of finite sweep points and compare with the contiguous one."""
    outcome = Outcome()
    if not torch.isfinite(case.elements.x).any():
        return outcome
    same = []
    routes = ROW_ROUTES if _has_columns(case) else ROUTES
    sizes = {route.values_per_call for route in routes}
    calls = _SIMULATED_CALLS if case.subject.simulated else _CALLS
    all_at_once = _POINTS[case.subject.fmt.bits]
    points = {
        size: _points(case, calls * size) if size else _all_at_once(case, all_at_once)
        for size in sizes
    }
    for route in routes:
        status, message, sample = _one(case, route, points[route.values_per_call])
        if status is FindingStatus.PASSED:
            same.append(route.name)
        else:
            outcome.findings.append(
                case.finding("routes", status, f"{route.name}: {message}", sample)
            )
    if same:
        message = f"bit for bit as contiguous: {', '.join(same)}"
        outcome.findings.append(case.finding("routes", FindingStatus.PASSED, message))
    return outcome


def _has_columns(case: Case) -> bool:
    """Tell whether the second argument has one value a column, as a bias does."""
    return case.subject.operator.arguments[-1] == "bias"


def _points(case: Case, count: int) -> Elements:
    finite = torch.isfinite(case.elements.x).nonzero().flatten()
    picks = torch.linspace(0, finite.numel() - 1, min(count, finite.numel())).long().unique()
    return case.elements.select(finite[picks])


def _all_at_once(case: Case, count: int) -> Elements:
    """Return the points of the routes that take many values a call.

    Where rows share their columns' biases these are other pairs than the sweep's, run in one row.
    """
    points = _points(case, count)
    if not _has_columns(case):
        return points
    x, bias = (part[: part.numel() // COLUMNS * COLUMNS] for part in points.inputs)
    inputs = (x, bias[:COLUMNS].repeat(x.numel() // COLUMNS))
    return case.measured(inputs, case.subject.run(*inputs))


def _one(case: Case, route: Route, points: Elements) -> tuple[FindingStatus, str, Sample | None]:
    """Return ``(status, message, sample)`` of one route."""
    try:
        members, result = _through(case, route, points)
    except KernelFailure as error:
        if is_refusal(error):
            return FindingStatus.NOTED, f"refused ({error})", None
        return FindingStatus.FAILED, str(error), None
    base = points.select(members)
    same = tensors.to_bits(result, points.fmt) == tensors.to_bits(base.actual, points.fmt)
    both_nan = torch.isnan(result.double()) & torch.isnan(base.actual.double())
    differing = (~(same | both_nan)).nonzero().flatten()
    if differing.numel() == 0:
        return FindingStatus.PASSED, "", None
    there = case.measured(base.inputs, result)
    batch = case.as_batch(there)
    shown = _compared(base, there, differing)
    broken = case.judged(there).broken
    also_here = case.judged(base).broken
    newly = (broken & ~also_here).nonzero().flatten()
    if newly.numel():
        message = f"{newly.numel()} of {members.numel()} break the contract on this route only"
        return FindingStatus.FAILED, f"{message}; {shown}", batch.worst_of(newly)
    return FindingStatus.NOTED, shown, batch.worst_of(differing)


def _compared(base: Elements, there: Elements, differing: torch.Tensor) -> str:
    def worst(elements: Elements) -> str:
        part = elements.select(differing).errors
        sizes = part.ulp[part.finite].abs()
        return f"{figure(float(sizes.max()))} ULP" if sizes.numel() else "no number"

    return (
        f"{differing.numel():,} of {len(base.errors):,} results differ from contiguous; "
        f"worst there {worst(there)}, contiguous {worst(base)}"
    )


def _through(case: Case, route: Route, points: Elements) -> tuple[torch.Tensor, torch.Tensor]:
    """Return indices into ``points`` and the results of the route for them."""
    total = len(points.errors)
    per_call = route.values_per_call or total
    indices, results = [], []
    for start in range(0, total, per_call):
        part = torch.arange(start, min(start + per_call, total))
        arguments = tuple(
            route.layout(argument[part].to(case.subject.device)) for argument in points.inputs
        )
        labels = route.layout(part)
        result = case.subject.apply(*arguments)
        require_like(result, arguments[-1].shape, case.subject.dtype)
        indices.append(labels.reshape(-1))
        # A copy: the next call may write into the same buffer.
        results.append(result.detach().to("cpu", copy=True).reshape(-1))
    return torch.cat(indices), torch.cat(results)
