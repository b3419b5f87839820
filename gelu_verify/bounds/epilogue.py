"""What the contract allows the activation alone: ULP of the arithmetic, and its allowances.

A fused kernel evaluates f in the arithmetic (fp32 below fp64) and rounds once, so the limit of the
contract counts in ULP of the arithmetic. Every allowance is taken at the largest argument that a
kernel may have there, |s| + its slack.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor

from gelu_verify import operators
from gelu_verify.bounds import bounded
from gelu_verify.contracts import AllowanceKind

if TYPE_CHECKING:
    from gelu_verify.bounds.arithmetic import Arithmetic
    from gelu_verify.bounds.bounded import Bounded

#: Greatest distance between the erf and tanh formulas, and between their derivatives, rounded up.
_METHOD_GAP = (4.8e-4, 1.1e-3)


def slack(
    argument: Bounded, result: Bounded, formula: str, arithmetic: Arithmetic, order: int
) -> Tensor:
    """Return the largest error of evaluating f or f' at ``argument``, float64."""
    contract = arithmetic.contract
    ulp = 2 * bounded.half_ulp(result.reach, arithmetic.own)
    allowed = contract.max_error_ulp * ulp
    reach = argument.reach
    cancellation = contract.allowance(AllowanceKind.CANCELLATION)
    if cancellation:
        lost = _cancellation(argument, formula, order) * arithmetic.unit * cancellation.factor
        allowed = torch.maximum(allowed, lost)
    guard = contract.allowance(AllowanceKind.GUARD)
    if guard:
        guarded = reach >= guard.threshold
        allowed = torch.where(guarded, allowed + _beyond(argument, result, order), allowed)
    if contract.allowance(AllowanceKind.APPROXIMATION):
        allowed = allowed + _METHOD_GAP[order]
    return allowed


def _cancellation(argument: Bounded, formula: str, order: int) -> Tensor:
    size = argument.reach
    if order == 0:
        return size
    derivative = operators.get("gelu_backward")
    return derivative.cancellation((torch.ones_like(size), size), formula)


def _beyond(argument: Bounded, result: Bounded, order: int) -> Tensor:
    """Return what a guard costs: f as 0 on the left; x, or 1 for the derivative, on the right."""
    right = argument.value if order == 0 else torch.ones_like(argument.value)
    kept = torch.where(argument.value < 0, torch.zeros_like(right), right)
    return (result.value - kept).abs() + result.total
