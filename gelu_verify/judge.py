"""Apply a contract to a batch: which elements break it, which hold only by an allowance.

Every comparison is written so that NaN fails. Elements whose verdict the reference's own error
bound leaves open are decided with mpmath.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial

import torch

from gelu_verify.contracts import Allowance, AllowanceKind, Contract, Subnormals, ZeroSign
from gelu_verify.formats import Format
from gelu_verify.measure.error import Class, Errors, measure
from gelu_verify.measure.regions import REGIONS, Region
from gelu_verify.measure.summary import Batch, Sample, earlier, worse
from gelu_verify.operators import Operator


@dataclass(frozen=True)
class Elements:
    """A batch of kernel results with all that judging needs; tensors of shape (N,).

    inputs and actual have the dtype of the format.
    """

    operator: Operator
    formula: str
    fmt: Format
    inputs: tuple[torch.Tensor, ...]
    actual: torch.Tensor
    errors: Errors

    @property
    def x(self) -> torch.Tensor:
        """The argument of the activation, float64."""
        return self.inputs[-1].double()

    def select(self, mask: torch.Tensor) -> Elements:
        """Return the elements where ``mask`` holds."""
        inputs = tuple(part[mask] for part in self.inputs)
        errors = self.errors.select(mask)
        return Elements(self.operator, self.formula, self.fmt, inputs, self.actual[mask], errors)


@dataclass(frozen=True)
class Verdicts:
    """broken: elements that break the contract, bool (N,); by_allowance: those that hold only by
    the allowance (or policy) of that name, bool (N,) each.
    """

    broken: torch.Tensor
    by_allowance: dict[str, torch.Tensor]


def judge(contract: Contract, elements: Elements) -> Verdicts:
    """Return the verdict on every element with finite inputs; NaN inputs must give NaN."""
    errors = elements.errors
    within = errors.finite & _within_limit(contract.max_error_ulp, elements)
    # NaN where NaN was due, and an infinity where rounding overflows, are right.
    no_class = errors.classes == int(Class.NONE)
    holds = within | (~errors.finite & no_class)
    if contract.zero_sign is ZeroSign.ANY:
        holds |= errors.classes == int(Class.WRONG_ZERO_SIGN)
    else:
        holds &= errors.classes != int(Class.WRONG_ZERO_SIGN)
    finite_inputs = torch.stack([torch.isfinite(part.double()) for part in elements.inputs]).all(0)
    holds |= ~finite_inputs & (errors.classes != int(Class.NUMBER_FOR_NAN))
    by_allowance = {}
    for name, covers in _exemptions(contract):
        open_cases = (~holds).nonzero().flatten()
        covered = torch.zeros_like(holds)
        if open_cases.numel():
            covered[open_cases] = covers(elements.select(open_cases))
        by_allowance[name] = covered
        holds |= covered
    return Verdicts(~holds, by_allowance)


def _within_limit(limit: float, elements: Elements) -> torch.Tensor:
    """Return where ``|error| <= limit``, asking the oracle where the fast reference cannot tell."""
    errors = elements.errors
    size = errors.ulp.abs()
    within = size <= limit
    if errors.bound == 0.0:
        return within
    exact_size = elements.actual.double().abs() + errors.absolute
    open_cases = (
        (size - limit).abs() * errors.ulp_size <= errors.bound * exact_size
    ) & errors.finite
    # A result with no error at all in float64 is within any limit by more than the bound.
    indices = open_cases.nonzero().flatten()
    if indices.numel():
        inputs = tuple(part[indices] for part in elements.inputs)
        exact = elements.operator.precise(inputs, elements.formula, elements.fmt)
        precise = measure(elements.actual[indices], exact, elements.fmt)
        within[indices] = precise.ulp.abs() <= limit
    return within


def _exemptions(contract: Contract) -> Iterator[tuple[str, Callable[[Elements], torch.Tensor]]]:
    """Yield name and predicate of the policy on subnormals and of each allowance."""
    if contract.subnormals is not Subnormals.IEEE:
        yield contract.subnormals.value, partial(_flushed, contract.subnormals)
    for allowance in contract.allowances:
        yield allowance.kind.value, partial(covers, allowance, contract.max_error_ulp)


def _flushed(policy: Subnormals, elements: Elements) -> torch.Tensor:
    flushed = elements.errors.classes == int(Class.FLUSHED_SUBNORMAL)
    subnormal_input = elements.x.abs() < elements.fmt.smallest_normal
    if policy is Subnormals.FLUSH_INPUTS:
        return flushed & subnormal_input
    if policy is Subnormals.FLUSH_OUTPUTS:
        return flushed & ~subnormal_input
    return flushed


def covers(allowance: Allowance, limit: float, elements: Elements) -> torch.Tensor:
    """Return where an allowance covers the error, bool (N,)."""
    if allowance.kind is AllowanceKind.GUARD:
        return elements.operator.saturated(elements.inputs, elements.actual, allowance.threshold)
    if allowance.kind is AllowanceKind.CANCELLATION:
        return elements.errors.finite & (cancellation_ratio(elements) <= allowance.factor)
    exact = elements.operator.exact(elements.inputs, allowance.formula, elements.fmt)
    stand_in = Elements(
        elements.operator,
        allowance.formula,
        elements.fmt,
        elements.inputs,
        elements.actual,
        measure(elements.actual, exact, elements.fmt),
    )
    within = stand_in.errors.finite & (stand_in.errors.ulp.abs() <= limit)
    return within | (stand_in.errors.finite & (cancellation_ratio(stand_in) <= 1.0))


def cancellation_ratio(elements: Elements) -> torch.Tensor:
    """Return ``|actual - y|`` in units of the slack that cancellation explains, float64 (N,)."""
    slack = elements.operator.cancellation(elements.inputs, elements.formula)
    unit = elements.fmt.arithmetic_unit
    return elements.errors.absolute / (slack * unit).clamp(min=torch.finfo(torch.float64).tiny)


@dataclass
class Usage:
    """Elements of one region that hold only by one allowance, and the worst of them."""

    count: int = 0
    worst: Sample | None = None


@dataclass
class Tally:
    """The verdicts of one contract over a sweep; merges like the summary."""

    contract: Contract
    broken: int = 0
    first: Sample | None = None
    worst: Sample | None = None
    usage: dict[tuple[str, Region], Usage] = field(default_factory=dict)

    def add(self, verdicts: Verdicts, batch: Batch) -> None:
        """Add the verdicts on a batch."""
        broken = verdicts.broken.nonzero().flatten()
        if broken.numel():
            self.broken += broken.numel()
            self.first = earlier(self.first, batch.first_of(broken))
            self.worst = worse(self.worst, batch.worst_of(broken))
        for name, mask in verdicts.by_allowance.items():
            for code in batch.regions[mask].unique().tolist():
                members = (mask & (batch.regions == code)).nonzero().flatten()
                usage = self.usage.setdefault((name, REGIONS[code]), Usage())
                usage.count += members.numel()
                usage.worst = worse(usage.worst, batch.worst_of(members))

    def merge(self, other: Tally) -> None:
        """Add another tally of the same contract."""
        self.broken += other.broken
        self.first = earlier(self.first, other.first)
        self.worst = worse(self.worst, other.worst)
        for key, theirs in other.usage.items():
            usage = self.usage.setdefault(key, Usage())
            usage.count += theirs.count
            usage.worst = worse(usage.worst, theirs.worst)
