"""Apply a contract to a batch: which elements break it, which hold only by an allowance.

Every comparison is written so that NaN fails. Elements whose verdict the reference's own error
bound leaves open are decided with mpmath.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial

import torch

from gelu_verify.contracts import Allowance, AllowanceKind, Contract, Subnormals, ZeroSign
from gelu_verify.errors import EmptySampleError
from gelu_verify.formats import Format, tensors
from gelu_verify.measure.error import Class, Errors, measure, steps
from gelu_verify.measure.regions import REGIONS, Region
from gelu_verify.measure.summary import Batch, Sample, earlier, worse
from gelu_verify.operators import Operator, is_neutral

#: The limit, in ULP, that means RN_T(y) and nothing else.
_CORRECTLY_ROUNDED = 0.5


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
        return self.operator.activated(self.inputs)

    @property
    def neutral(self) -> torch.Tensor:
        """Where every argument but the swept one does nothing, bool (N,)."""
        return is_neutral(self.operator.arguments, self.inputs)

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
    for name, covers in _exemptions(contract, elements.operator):
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


def _exemptions(
    contract: Contract, operator: Operator
) -> Iterator[tuple[str, Callable[[Elements], torch.Tensor]]]:
    """Yield name and predicate of the policies on subnormals and on the intermediate of an
    operator that has one, and of each allowance.
    """
    if contract.subnormals is not Subnormals.IEEE:
        yield contract.subnormals.value, partial(_flushed, contract.subnormals)
    for allowance in contract.allowances:
        yield allowance.kind.value, partial(covers, allowance, contract.max_error_ulp)
    if contract.rounded_intermediate and operator.intermediate is not None:
        yield INTERMEDIATE, partial(rounds_intermediate, contract)


def _flushed(policy: Subnormals, elements: Elements) -> torch.Tensor:
    outputs = elements.errors.classes == int(Class.FLUSHED_SUBNORMAL)
    lost = outputs | (elements.errors.classes == int(Class.COLLAPSE))
    smallest = elements.fmt.smallest_normal
    inputs = lost & elements.operator.underflows(elements.inputs, smallest)
    if policy is Subnormals.FLUSH_INPUTS:
        return inputs
    return outputs if policy is Subnormals.FLUSH_OUTPUTS else inputs | outputs


def covers(allowance: Allowance, limit: float, elements: Elements) -> torch.Tensor:
    """Return where an allowance covers the error, bool (N,)."""
    if allowance.kind is AllowanceKind.GUARD:
        return elements.operator.saturated(elements.inputs, elements.actual, allowance.threshold)
    if allowance.kind is AllowanceKind.CANCELLATION:
        return elements.errors.finite & (cancellation_ratio(elements) <= allowance.factor)
    stand_in = _as_formula(elements, allowance.formula)
    within = stand_in.errors.finite & (stand_in.errors.ulp.abs() <= limit)
    return within | (stand_in.errors.finite & (cancellation_ratio(stand_in) <= 1.0))


#: Name of the policy in ``Verdicts.by_allowance``.
INTERMEDIATE = "intermediate"


def rounds_intermediate(contract: Contract, elements: Elements) -> torch.Tensor:
    """Return where the error is what rounding the intermediate to the format explains, bool (N,).

    The result must be as near to one of the exact values that this reaches (``Operator.reach``) as
    the contract permits it to be to the exact value itself, by its limit or an allowance.
    """
    covered = _near_reachable(contract, elements)
    stand_in = contract.allowance(AllowanceKind.APPROXIMATION)
    if stand_in and stand_in.formula != elements.formula:
        covered |= _near_reachable(contract, _as_formula(elements, stand_in.formula))
    return covered


def _near_reachable(contract: Contract, elements: Elements) -> torch.Tensor:
    errors, operator = elements.errors, elements.operator
    below, above = operator.reach(elements.inputs, elements.formula, elements.fmt)
    signed = errors.ulp * errors.ulp_size
    up = signed >= 0
    beyond = torch.where(up, signed - above, -signed - below)
    slack = contract.max_error_ulp * errors.ulp_size
    if elements.fmt.bits < 64:
        end = elements.actual.double() - signed + torch.where(up, above, -below)
        exponent = tensors.binade(end.nan_to_num(nan=0.0), elements.fmt)
        scale = exponent.clamp(max=elements.fmt.emax) - (elements.fmt.precision - 1)
        slack = contract.max_error_ulp * tensors.power_of_two(scale)
    cancelled = contract.allowance(AllowanceKind.CANCELLATION)
    if cancelled:
        lost = operator.cancellation(elements.inputs, elements.formula)
        lost = lost * (elements.fmt.arithmetic_unit * cancelled.factor)
        left = _left_of_cancellation(elements)
        slack = torch.maximum(slack, torch.where(left, argument_slack(elements), lost))
    covered = errors.finite & (beyond <= slack)
    if elements.fmt.bits < 64:
        # An infinity is sized as 2^(emax+1): it is due where what is reached rounds to it.
        fmt, got = elements.fmt, elements.actual.double()
        size = 2.0 ** (fmt.emax + 1) - errors.absolute + torch.where(got > 0, above, below)
        due = size >= 2.0**fmt.emax * (2.0 - 2.0**-fmt.precision)
        covered |= (errors.classes == int(Class.INFINITY_FOR_FINITE)) & due
    guard = contract.allowance(AllowanceKind.GUARD)
    if guard and operator.intermediate == "x + bias":
        # The guard sees the rounded sum.
        nearer = guard.threshold / (1 + elements.fmt.unit_roundoff)
        covered |= (elements.x <= -nearer) & (elements.actual.double() == 0)
    return covered


def _as_formula(elements: Elements, formula: str) -> Elements:
    """Return the elements measured against another formula."""
    operator, fmt, inputs, actual = (
        elements.operator, elements.fmt, elements.inputs, elements.actual
    )  # fmt: skip
    errors = measure(actual, operator.exact(inputs, formula, fmt), fmt)
    return Elements(operator, formula, fmt, inputs, actual, errors)


#: Where the left tail is 0 for certain in float32 and in float64 arithmetic: 1 + erf from 5.54 and
#: 8.30 on, 1 + tanh before; 1/(1 + e^-y) underflows at x = -52 and -438. Beyond, a result of 0 is
#: explained, and one that is off by what rounding the tail's argument explains.
ZERO_BELOW = {"erf": (-6.5, -9.5), "tanh": (-6.5, -9.5), "sigmoid": (-70.0, -450.0)}

#: Relative roundings (u) of the argument of erfc, x·√½, and of the exponentials: u(x) in its seven
#: constants and operations, and 1.702x.
ARGUMENT_ROUNDINGS = {"erf": 2.0, "tanh": 7.0, "sigmoid": 2.0}


def cancellation_ratio(elements: Elements) -> torch.Tensor:
    """Return ``|actual - y|`` in units of the slack that the textbook forms explain, float64 (N,).

    That is what cancellation loses, |x|·u for GELU itself. Far left, where it grows without limit,
    a result that has become 0 is explained, and else only ``argument_slack``. The slack of the
    derivative is at most ``|dy|·u``.
    """
    errors = elements.errors
    slack = elements.operator.cancellation(elements.inputs, elements.formula)
    slack = slack * elements.fmt.arithmetic_unit
    slack = torch.where(_left_of_cancellation(elements), argument_slack(elements), slack)
    return errors.absolute / slack.clamp(min=torch.finfo(torch.float64).tiny)


def argument_slack(elements: Elements) -> torch.Tensor:
    """Return the error of a form without cancellation, as 0.5x·erfc(-x√½), far left; absolute (N,).

    An argument rounded by δ moves ln erfc(t) by t·h(t)·δ, h its hazard; with t² = x²/2 Mills' ratio
    bounds t·h(t) by x² + 1. That of a logistic function moves by its own argument, 2u(x) or
    1.702x, times δ. 4 ULP more are for the function itself.
    """
    errors, formula = elements.errors, elements.formula
    size = elements.x.abs()
    if formula == "erf":
        condition = size * size + 1.0
    elif formula == "tanh":
        condition = 2.0 * math.sqrt(2.0 / math.pi) * size * (0.044715 * size * size + 1.0)
    else:
        condition = 1.702 * size
    exact = (elements.actual.double() - errors.ulp * errors.ulp_size).abs()
    relative = ARGUMENT_ROUNDINGS[formula] * elements.fmt.arithmetic_unit
    return condition * relative * exact + 4.0 * errors.ulp_size


def _left_of_cancellation(elements: Elements) -> torch.Tensor:
    """Return where a result that is not 0 is beyond what cancellation explains, bool (N,)."""
    if elements.operator.derivative:
        return torch.zeros(len(elements.errors), dtype=torch.bool, device=elements.actual.device)
    far = elements.x < ZERO_BELOW[elements.formula][elements.fmt.bits == 64]
    return far & (elements.actual.double() != 0.0)


#: Greatest distance between the erf and tanh formulas (4.73236e-4 at ±2.69894), rounded up.
_METHOD_GAP = 4.8e-4


def permitted(contract: Contract, elements: Elements) -> torch.Tensor:
    """Return the largest error a contract permits at each element, absolute, float64 (N,).

    Two neighbours of a monotone function may be out of order by at most the sum of theirs.
    """
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
    if contract.subnormals is not Subnormals.IEEE:
        flushed = _flushed(contract.subnormals, elements)
        slack = torch.where(flushed, slack + elements.errors.absolute, slack)
    return slack


def strength(contract: Contract, elements: Elements) -> torch.Tensor:
    """Return ``|error|`` over what a contract permits, float64 (N,); infinite without a number."""
    errors = elements.errors
    limit = contract.max_error_ulp * errors.ulp_size
    slack = torch.maximum(permitted(contract, elements), limit)
    left = limit
    if contract.allowance(AllowanceKind.CANCELLATION):
        left = torch.maximum(limit, argument_slack(elements))
    ratio = errors.absolute / torch.where(_left_of_cancellation(elements), left, slack)
    return torch.where(errors.finite, ratio, torch.inf)


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
