"""Apply a contract to a batch: which elements break it, which hold only by an allowance.

Every comparison is written so that NaN fails. Elements whose verdict the reference's own error
bound leaves open are decided with mpmath.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import torch

from gelu_verify.allowances import exemptions
from gelu_verify.contracts import Contract, ZeroSign
from gelu_verify.elements import Elements
from gelu_verify.errors import EmptySampleError
from gelu_verify.measure.error import Class, measure, steps
from gelu_verify.measure.regions import REGIONS, Region
from gelu_verify.measure.summary import Batch, Sample, earlier, worse

#: The limit, in ULP, that means RN_T(y) and nothing else.
_CORRECTLY_ROUNDED = 0.5


@dataclass(frozen=True)
class Verdicts:
    """broken: elements that break the contract, bool (N,); by_allowance: those that hold only by
    the allowance (or policy) of that name, bool (N,) each.
    """

    broken: torch.Tensor
    by_allowance: dict[str, torch.Tensor]


def judge(contract: Contract, elements: Elements) -> Verdicts:
    """Return the verdict on every element with finite inputs; NaN inputs must give NaN.

    Raises EmptySampleError for no elements: no sample, no verdict.
    """
    errors = elements.errors
    if len(errors) == 0:
        raise EmptySampleError(f"{contract.name}: got no elements, expected at least one.")
    # Overflow is a matter of rounding too: next to it an infinity, or none, can be near enough.
    within = (errors.finite | _overflow_is_open(elements)) & _within_limit(
        contract.max_error_ulp, elements
    )
    # NaN where NaN was due, and an infinity where rounding overflows, are right.
    no_class = errors.classes == int(Class.NONE)
    holds = within | (~errors.finite & no_class)
    if contract.zero_sign is ZeroSign.ANY:
        holds |= errors.classes == int(Class.WRONG_ZERO_SIGN)
    else:
        holds &= errors.classes != int(Class.WRONG_ZERO_SIGN)
    finite_inputs = torch.stack([torch.isfinite(part.double()) for part in elements.inputs]).all(0)
    holds |= ~finite_inputs & (errors.classes != int(Class.NUMBER_FOR_NAN))
    excusable = _excusable(contract, elements)
    by_allowance = {}
    for name, covers in exemptions(contract, elements.operator):
        open_cases = (~holds & excusable).nonzero().flatten()
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
    exact_size = elements.actual.double().abs() + errors.absolute
    open_cases = (
        (size - limit).abs() * errors.ulp_size <= errors.bound * exact_size
    ) & errors.finite
    # A result with no error at all in float64 is within any limit by more than the bound.
    if limit == _CORRECTLY_ROUNDED and errors.bound:
        side = elements.operator.side_of_tie(elements.inputs)
        tie = open_cases & (size == limit) & (side != 0)
        within[tie] = errors.ulp[tie].sign() == side[tie]
        open_cases &= ~tie
    elif errors.bound and bool(open_cases.any()):
        at_limit = open_cases & _rounds_to(limit, elements)
        within |= at_limit
        open_cases &= ~at_limit
    indices = open_cases.nonzero().flatten()
    if indices.numel() and (errors.bound or limit == _CORRECTLY_ROUNDED):
        inputs = tuple(part[indices] for part in elements.inputs)
        exact = elements.operator.precise(inputs, elements.formula, elements.fmt)
        actual = elements.actual[indices].cpu()  # the oracle's values are there
        precise = measure(actual, exact, elements.fmt).ulp.abs()
        decided = precise <= limit
        if limit == _CORRECTLY_ROUNDED:
            # Next to a tie the error is 0.5 in float64 on either side, and below a power of two
            # half an ULP is a whole step: only the rounded value itself is correctly rounded.
            rounded = steps(actual, exact, elements.fmt) == 0
            decided = torch.where(precise == limit, rounded, decided)
        within[indices] = decided.to(within.device)
    return within


def _rounds_to(limit: float, elements: Elements) -> torch.Tensor:
    """Return which open errors the oracle would give as the limit itself, in float64, bool (N,).

    Where ``side_of_tie`` tells the side, a product of two 16-bit arguments is within 2^-60 of one
    of 22 bits. From ulp/16 on that and its distance from any result are multiples of 2^-26 ULP, so
    if the bound, 2^-38 ULP, leaves open on which side of a limit of 20 fractional bits it lies, it
    is that limit; and 2^8 ULP times 2^-60 is lost in 4.
    """
    errors = elements.errors
    is_product = len(elements.inputs) == 2 and elements.operator.intermediate != "x + bias"
    if elements.fmt.bits != 16 or not is_product or limit < 4.0 or limit * 2.0**20 % 1.0 != 0.0:
        return torch.zeros_like(errors.finite)
    exact = elements.actual.double() - errors.ulp * errors.ulp_size
    is_short = exact.abs() >= errors.ulp_size / 16
    return is_short & (elements.operator.side_of_tie(elements.inputs) != 0)


def _overflow_is_open(elements: Elements) -> torch.Tensor:
    """Return where an infinity, or none, is a matter of rounding: |y| beyond the largest value."""
    errors = elements.errors
    lost = errors.classes == int(Class.LOST_INFINITY)
    given = errors.classes == int(Class.INFINITY_FOR_FINITE)
    sized = 2.0 ** min(elements.fmt.emax + 1, 1023)
    exact_size = torch.where(given, sized - errors.absolute, 0.0)
    return lost | (given & (exact_size > elements.fmt.largest))


def _excusable(contract: Contract, elements: Elements) -> torch.Tensor:
    """Return what an allowance may cover: not NaN in or out, nor a sign of zero that is judged."""
    never = [Class.NAN_FOR_NUMBER, Class.NUMBER_FOR_NAN]
    if contract.zero_sign is ZeroSign.STRICT:
        never.append(Class.WRONG_ZERO_SIGN)
    return torch.stack([elements.errors.classes != int(cls) for cls in never]).all(0)


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
