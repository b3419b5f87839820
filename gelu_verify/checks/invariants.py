"""Invariants of GELU that need no reference value: finite, sign, bounds, monotone, not flat.

Each has the slack that the contract implies: a kernel within L ULP of a monotone function can step
back by no more than L ULP of each neighbour, so the contract and the invariant never disagree about
a kernel; what an invariant adds is the kind of fault, and the points between the samples.
"""

from __future__ import annotations

import torch

from gelu_verify.allowances import permitted
from gelu_verify.checks.case import Case, Outcome
from gelu_verify.elements import Elements
from gelu_verify.exhaustive.census import Census
from gelu_verify.measure.summary import Batch, Sample
from gelu_verify.records import FindingStatus
from gelu_verify.reference.oracle import minimum
from gelu_verify.report.numbers import figure


def run(case: Case) -> Outcome:
    """Check the invariants on the sweep, in ascending x.

    Only that a result is finite is asked of every element; what a curve must do is asked where the
    other argument, if there is one, does nothing.
    """
    outcome = Outcome()
    inputs = case.elements.inputs
    finite = torch.stack([torch.isfinite(part.double()) for part in inputs]).all(0)
    if not finite.any():
        return outcome
    elements = case.elements.select(finite)
    if case.job.replay:
        elements = elements.select(torch.argsort(elements.x, stable=True))
    batch = case.as_batch(elements)
    _report(case, outcome, batch, _not_finite(elements), "finite input gives a non-finite result")
    usable = torch.isfinite(elements.actual.double()) & elements.neutral
    is_curve = case.subject.operator.derivative == 0
    if is_curve and usable.any():
        elements = elements.select(usable)
        batch = case.as_batch(elements)
        slack = permitted(case.contract, elements)
        for message, broken in (
            ("sign of the result is not the sign of x", _wrong_sign(elements)),
            ("result exceeds max(x, 0)", _above(elements, slack)),
            ("result is below the minimum of the formula", _below(case, elements, slack)),
        ):
            _report(case, outcome, batch, broken, message)
        pairs = [("flat where the exact value moves", _flat(case, elements, slack))]
        if case.census is None:
            pairs.insert(0, ("not monotone", _reversed(case, elements, slack)))
        else:
            _report_reversals(case, outcome, case.census)
        for message, (broken, others) in pairs:
            _report(case, outcome, batch, broken, message, others)
    if not outcome.findings:
        names = "finite"
        if is_curve:
            names = "finite, sign, bounds, minimum, monotone, not flat"
        found = case.finding("invariants", FindingStatus.PASSED, f"{names}: hold")
        outcome.findings.append(found)
    return outcome


def _report(
    case: Case,
    outcome: Outcome,
    batch: Batch,
    broken: torch.Tensor,
    message: str,
    others: torch.Tensor | None = None,
) -> None:
    """Add a finding on the worst broken element; ``others`` has the index it was compared with."""
    indices = broken.nonzero().flatten()
    if indices.numel() == 0:
        return
    sample = batch.worst_of(indices)
    other = None
    if others is not None:
        here = torch.stack(
            [
                bits[indices] == pattern
                for bits, pattern in zip(batch.inputs, sample.inputs, strict=True)
            ]
        ).all(0)
        other = batch.sample(int(others[indices[here.nonzero()[0]]]))
    point = case.point(sample)
    text = f"{message} at {indices.numel():,} inputs, as got {point.actual} for exact {point.exact}"
    finding = case.finding("invariants", FindingStatus.FAILED, text, sample, other)
    outcome.findings.append(finding)


def _report_reversals(case: Case, outcome: Outcome, census: Census) -> None:
    """Add a finding if results step back from their neighbour's by more than is permitted."""
    worst = census.worst_reversal
    if census.reversals_broken == 0 or worst is None:
        return
    text = (
        f"not monotone at {census.reversals_broken:,} inputs, of {census.reversals:,} that step "
        f"back; at most {figure(worst.error_ulp)} ULP, to {case.point(worst).actual}"
    )
    before = Sample((worst.inputs[0] - 1,), worst.actual, 0.0)
    finding = case.finding("invariants", FindingStatus.FAILED, text, worst, before)
    outcome.findings.append(finding)


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


def _reversed(
    case: Case, elements: Elements, slack: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the elements whose result steps back from the one before by more than the slack, and
    the index of the one before.
    """
    turning = float(minimum(case.subject.formula)[0])
    x, got = elements.x, elements.actual.double()
    rise = got[1:] - got[:-1]
    falling = x[1:] <= turning
    rising = x[:-1] >= turning
    backwards = torch.where(falling, rise, torch.where(rising, -rise, torch.zeros_like(rise)))
    broken = backwards > slack[1:] + slack[:-1]
    before = torch.arange(-1, got.numel() - 1).clamp(min=0)
    return torch.cat([torch.zeros(1, dtype=torch.bool), broken]), before


def _flat(case: Case, elements: Elements, slack: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the last element of every run of equal results over which the exact value moves by
    more than an ULP beyond what the errors permitted at both ends explain, and the index of the
    first element of its run. A run starts no further left than where the exact value becomes 0:
    it moves no more there, and the permitted |x|·u grows without end.
    """
    got = elements.actual.double()
    new = torch.cat([torch.ones(1, dtype=torch.bool), got[1:] != got[:-1]])
    left = int((elements.x < case.regions.zero_threshold).sum())
    if left < got.numel():
        new[left] = True
    starts = new.nonzero().flatten()
    ends = torch.cat([starts[1:] - 1, torch.tensor([got.numel() - 1])])
    exact = got - elements.errors.ulp * elements.errors.ulp_size
    moved = (exact[ends] - exact[starts]).abs()
    unit = torch.maximum(elements.errors.ulp_size[starts], elements.errors.ulp_size[ends])
    broken = torch.zeros(got.numel(), dtype=torch.bool)
    broken[ends[moved > slack[starts] + slack[ends] + unit]] = True
    return broken, torch.repeat_interleave(starts, ends - starts + 1)
