"""What the contract allows the activation alone: ULP of the arithmetic, and its allowances.

A fused kernel evaluates f in the arithmetic (fp32 below fp64) and rounds once, so the limit of the
contract counts in ULP of the arithmetic. Every allowance is taken at the largest argument that a
kernel may have there, |s| + its slack.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from gelu_verify import operators
from gelu_verify.bounds import activation, bounded
from gelu_verify.contracts import AllowanceKind

if TYPE_CHECKING:
    from gelu_verify.bounds.arithmetic import Arithmetic
    from gelu_verify.bounds.bounded import Bounded

#: |x| from which f(-|x|) and f'(-|x|) only shrink, for every formula, and their size before, at
#: most.
_SHRINKS_FROM, _LEFT_SIZE = 3.0, 0.2
#: The distance between two formulas is searched in steps of ``_STEP`` over ±``_SEARCHED``, beyond
#: which both are within 2^-25 of their limits; its second derivative is below ``_CURVES``.
_STEP, _SEARCHED, _CURVES = 2.0**-10, 12.0, 8.0


def slack(
    argument: Bounded, result: Bounded, formula: str, arithmetic: Arithmetic, order: int
) -> Tensor:
    """Return the largest error of evaluating f or f' at ``argument``, float64."""
    contract = arithmetic.contract
    ulp = 2 * bounded.half_ulp(result.reach, arithmetic.own)
    allowed = contract.max_error_ulp * ulp
    cancellation = contract.allowance(AllowanceKind.CANCELLATION)
    if cancellation:
        lost = _cancellation(argument, formula, order) * arithmetic.unit * cancellation.factor
        allowed = torch.maximum(allowed, lost)
    guard = contract.allowance(AllowanceKind.GUARD)
    if guard:
        allowed = allowed + _guarded(argument, guard.threshold, formula, order)
    approximation = contract.allowance(AllowanceKind.APPROXIMATION)
    if approximation:
        allowed = allowed + method_gap(formula, approximation.formula, order)
    return allowed


@cache
def method_gap(formula: str, other: str, order: int) -> float:
    """Return the greatest distance between two formulas, or between their derivatives."""
    if formula == other:
        return 0.0
    x = torch.arange(-_SEARCHED, _SEARCHED, _STEP, dtype=torch.float64)
    gap = activation.value(x, formula, order)[0] - activation.value(x, other, order)[0]
    return float(gap.abs().max()) + _CURVES * _STEP**2 / 8


def _cancellation(argument: Bounded, formula: str, order: int) -> Tensor:
    size = argument.reach
    if order == 0:
        return size
    derivative = operators.get("gelu_backward")
    return derivative.cancellation((torch.ones_like(size), size), formula)


def _guarded(argument: Bounded, threshold: float, formula: str, order: int) -> Tensor:
    """Return what a guard costs where a kernel's argument may be beyond it, else 0.

    It gives f as 0 on the left and x on the right (f' as 0 and 1), and so loses f(-a), a >=
    threshold the size of the argument, which is largest for the smallest a.
    """
    nearest = argument.value.abs() - argument.total - argument.own
    lost, error = activation.value(-nearest.clamp(min=threshold), formula, order)
    cost = lost.abs() + error
    cost = torch.where(nearest.clamp(min=threshold) < _SHRINKS_FROM, _LEFT_SIZE, cost)
    return torch.where(argument.reach >= threshold, cost, 0.0)
