"""Invariants of GELU that need no reference value: finite, sign, bounds, monotone, not flat.

Each has the slack that the contract implies: a kernel within L ULP of a monotone function can step
back by no more than L ULP of each neighbour, so the contract and the invariant never disagree about
a kernel; what an invariant adds is the kind of fault, and the points between the samples.
"""

from __future__ import annotations

import torch

from gelu_verify.checks.case import Case, Outcome
from gelu_verify.contracts import AllowanceKind
from gelu_verify.judge import Elements
from gelu_verify.measure.summary import Batch
from gelu_verify.records import FindingStatus
from gelu_verify.reference.oracle import minimum

#: Greatest distance between two formulas that may stand in for each other (tanh for erf).
_METHOD_GAP = 4.8e-4


def run(case: Case) -> Outcome:
    """Check the invariants on the sweep, in ascending x."""
    outcome = Outcome()
    finite = torch.isfinite(case.elements.x)
    elements = case.elements.select(finite)
    batch = case.as_batch(elements)
    _report(case, outcome, batch, _not_finite(elements), "finite input gives a non-finite result")
    if case.subject.operator.name == "gelu":
        usable = torch.isfinite(elements.actual.double())
        elements = elements.select(usable)
        batch = case.as_batch(elements)
        slack = _slack(case, elements)
        for message, broken in (
            ("sign of the result is not the sign of x", _wrong_sign(elements)),
            ("result exceeds max(x, 0)", _above(elements, slack)),
            ("result is below the minimum of the formula", _below(case, elements, slack)),
            ("not monotone", _reversed(case, elements, slack)),
            ("flat where the exact value moves", _flat(elements, slack)),
        ):
            _report(case, outcome, batch, broken, message)
    if not outcome.findings:
        names = "finite"
        if case.subject.operator.name == "gelu":
            names = "finite, sign, bounds, minimum, monotone, not flat"
        found = case.finding("invariants", FindingStatus.PASSED, f"{names}: hold")
        outcome.findings.append(found)
    return outcome


def _report(case: Case, outcome: Outcome, batch: Batch, broken: torch.Tensor, message: str) -> None:
    indices = broken.nonzero().flatten()
    if indices.numel() == 0:
        return
    sample = batch.worst_of(indices)
    point = case.point(sample)
    text = f"{message} at {indices.numel():,} inputs, as got {point.actual} for exact {point.exact}"
    outcome.findings.append(case.finding("invariants", FindingStatus.FAILED, text, sample))


def _slack(case: Case, elements: Elements) -> torch.Tensor:
    """Return the largest error the contract permits at each element, absolute, float64 (N,)."""
    contract = case.contract
    # A correctly rounded function is monotone without any slack.
    limit = 0.0 if contract.max_error_ulp <= 0.5 else contract.max_error_ulp
    slack = limit * elements.errors.ulp_size
    cancellation = contract.allowance(AllowanceKind.CANCELLATION)
    if cancellation:
        unit = elements.fmt.arithmetic_unit * cancellation.factor
        lost = elements.operator.cancellation(elements.inputs, elements.formula) * unit
        slack = torch.maximum(slack, lost)
    if contract.allowance(AllowanceKind.APPROXIMATION):
        slack = slack + _METHOD_GAP
    guard = contract.allowance(AllowanceKind.GUARD)
    if guard:
        beyond = elements.operator.saturated(elements.inputs, elements.actual, guard.threshold)
        slack = torch.where(beyond, slack + elements.errors.absolute, slack)
    return slack


def _not_finite(elements: Elements) -> torch.Tensor:
    right = elements.errors.classes == 0  # an infinity is right where rounding overflows
    return ~torch.isfinite(elements.actual.double()) & ~right


def _wrong_sign(elements: Elements) -> torch.Tensor:
    return elements.actual.double() * elements.x.sign() < 0


def _above(elements: Elements, slack: torch.Tensor) -> torch.Tensor:
    return ~(elements.actual.double() <= elements.x.clamp(min=0.0) + slack)


def _below(case: Case, elements: Elements, slack: torch.Tensor) -> torch.Tensor:
    lowest = float(minimum(case.subject.formula)[1])
    rounding = 2.0**-case.subject.fmt.precision * abs(lowest)
    return ~(elements.actual.double() >= lowest - rounding - slack)


def _reversed(case: Case, elements: Elements, slack: torch.Tensor) -> torch.Tensor:
    """Return the elements whose result steps back from the one before by more than the slack."""
    turning = float(minimum(case.subject.formula)[0])
    x, got = elements.x, elements.actual.double()
    rise = got[1:] - got[:-1]
    falling = x[1:] <= turning
    rising = x[:-1] >= turning
    backwards = torch.where(falling, rise, torch.where(rising, -rise, torch.zeros_like(rise)))
    broken = backwards > slack[1:] + slack[:-1]
    return torch.cat([torch.zeros(1, dtype=torch.bool), broken])


def _flat(elements: Elements, slack: torch.Tensor) -> torch.Tensor:
    """Return the last element of every run of equal results over which the exact value moves by
    more than an ULP beyond what the errors permitted at both ends explain.
    """
    got = elements.actual.double()
    starts = torch.cat([torch.ones(1, dtype=torch.bool), got[1:] != got[:-1]]).nonzero().flatten()
    ends = torch.cat([starts[1:] - 1, torch.tensor([got.numel() - 1])])
    exact = got - elements.errors.ulp * elements.errors.ulp_size
    moved = (exact[ends] - exact[starts]).abs()
    unit = torch.maximum(elements.errors.ulp_size[starts], elements.errors.ulp_size[ends])
    broken = torch.zeros(got.numel(), dtype=torch.bool)
    broken[ends[moved > slack[starts] + slack[ends] + unit]] = True
    return broken
