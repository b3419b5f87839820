"""Batch invariance: whether a row gets the same bits alone as among others.

A kernel that picks another tile, split or instruction for another number of rows rounds otherwise.
That breaks no bound, so it is noted, apart from accuracy; a row that leaves its bound in some batch
is a failure.
"""

from __future__ import annotations

import torch
from torch import Tensor

from gelu_verify.bounds import Bounded
from gelu_verify.checks.case import Outcome
from gelu_verify.checks.fused import rows
from gelu_verify.checks.fused.case import FusedCase
from gelu_verify.checks.fused.difference import Difference, difference
from gelu_verify.checks.fused.ratios import judged
from gelu_verify.inputs.problems import Problem, ladder
from gelu_verify.kernels.subject import KernelFailure, is_refusal
from gelu_verify.records import BatchDifference, Finding, FindingStatus
from gelu_verify.report.numbers import figure

BATCHES = (1, 2, 17, 33, 128, 257)
#: Products in the largest batch: wide enough for a split sum, quick on a CPU.
_PRODUCTS = 2**24
_SIMULATED_PRODUCTS = 2**18
#: The largest of the other dimensions; less where the work grows with the square of one.
_WIDEST, _WIDEST_SQUARED = 256, 64


def run(case: FusedCase) -> Outcome:
    """Compare the first and the last row of every batch with the same row alone."""
    outcome = Outcome()
    if case.operator.rows is None:
        skipped = case.finding("batch", FindingStatus.SKIPPED, rows.NO_ROWS)
        return Outcome([skipped])
    found: dict[int, BatchDifference] = {}
    for problem in case.asked_or(_own(case)):
        _one(case, problem, outcome, found)
    if found:
        outcome.fields["batches"] = tuple(found.values())
        outcome.findings.append(_said(case, found))
    return outcome


def _own(case: FusedCase) -> tuple[Problem, ...]:
    products = _SIMULATED_PRODUCTS if case.subject.simulated else _PRODUCTS
    widest = _WIDEST if ladder.squared(case.operator) is None else _WIDEST_SQUARED
    found = rows.problem_of(case, max(BATCHES), products, widest)
    return (found,) if found else ()


def _one(
    case: FusedCase, problem: Problem, outcome: Outcome, found: dict[int, BatchDifference]
) -> None:
    """Add what one case shows; a batch that the kernel refuses is noted."""
    total = dict(problem.dims).get(str(case.operator.rows), 0)
    if not total:
        return
    places, axis = rows.axes(case.operator, problem)
    inputs = case.inputs(problem)
    exact = case.operator.forward(inputs, case.job.formula, case.arithmetic)
    alone: dict[int, Tensor] = {}

    def called(start: int, count: int) -> Tensor:
        result = case.call(rows.part(inputs, places, start, count)).detach()
        if not any(finding.status is FindingStatus.FAILED for finding in outcome.findings):
            outcome.findings += _broken(case, problem, result, exact, axis, start)
        return result

    for batch in (size for size in BATCHES if size <= total):
        try:
            among = called(0, batch)
            for row in {0, batch - 1} - set(alone):
                alone[row] = called(row, 1)
        except KernelFailure as error:
            if not is_refusal(error):
                raise
            message = f"refused: {batch} rows: {error}"
            outcome.findings.append(case.finding("batch", FindingStatus.NOTED, message))
            continue
        picked = sorted({0, batch - 1})
        here = torch.stack([among.select(axis, row) for row in picked])
        there = torch.stack([alone[row].select(axis, 0) for row in picked])
        found[batch] = _record(batch, here, difference(there, here, case.subject.fmt))


def _record(batch: int, compared: Tensor, differs: Difference | None) -> BatchDifference:
    return BatchDifference(
        batch=batch,
        elements=compared.numel(),
        differing=differs.count if differs else 0,
        max_ulp=differs.max_ulp if differs else 0.0,
    )


def _broken(
    case: FusedCase, problem: Problem, result: Tensor, exact: Bounded, axis: int, start: int
) -> list[Finding]:
    """Return a failure if a row of a batch leaves its bound."""
    count = result.shape[axis]
    own = exact.map(lambda part: part.expand_as(exact.value).narrow(axis, start, count))
    name = f"rows {start} to {start + count - 1} of {problem}"
    faults = judged(result, own, case.subject.fmt, case.contract, name).faults
    return [
        case.finding("batch", FindingStatus.FAILED, f"{name} alone: {message}", problem)
        for message in faults.values()
    ]


def _said(case: FusedCase, found: dict[int, BatchDifference]) -> Finding:
    differing = [row for row in found.values() if row.differing]
    if not differing:
        sizes = ", ".join(str(batch) for batch in found)
        message = f"a row alone and in batches of {sizes} gets the same bits"
        return case.finding("batch", FindingStatus.PASSED, message)
    shown = "; ".join(
        f"{row.batch}: {row.differing:,} of {row.elements:,} elements, "
        f"at most {figure(row.max_ulp)} ULP"
        for row in differing
    )
    message = f"a row alone gets other bits than in a batch of {shown}"
    return case.finding("batch", FindingStatus.NOTED, message)
