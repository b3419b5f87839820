"""What a contract allows beyond its limit: which errors an allowance or a policy covers.

Every comparison is written so that NaN fails.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from functools import partial

import torch

from gelu_verify.contracts import Allowance, AllowanceKind, Contract, Subnormals
from gelu_verify.elements import Elements
from gelu_verify.formats import tensors
from gelu_verify.measure.error import Class, measure
from gelu_verify.operators import Operator

#: Name of the policy on the intermediate in ``Verdicts.by_allowance``.
INTERMEDIATE = "intermediate"


def exemptions(
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
