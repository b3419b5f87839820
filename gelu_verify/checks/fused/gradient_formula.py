"""Gradient formula: forward and backward belong to the same GELU.

Each is compared with all formulas, on the case that makes the operator the activation alone where
it has one. A gradient that breaks the bound of the declared formula and fits another better is that
of another function than the one declared; so is one that fits no formula that the forward fits.
"""

from __future__ import annotations

import torch
from torch import Tensor

from gelu_verify.bounds import Bounded
from gelu_verify.checks.case import Outcome
from gelu_verify.checks.fused.case import FusedCase
from gelu_verify.checks.fused.differentiation import NO_GRADIENT, gradients, leaves
from gelu_verify.checks.fused.ratios import judged
from gelu_verify.formats import tensors
from gelu_verify.inputs.problems import ladder
from gelu_verify.kernels.subject import KernelFailure, is_refusal
from gelu_verify.operators.base import FORMULAS
from gelu_verify.records import Finding, FindingStatus
from gelu_verify.report.numbers import figure

_CHECK = "gradient_formula"
#: Where the formulas differ most, in value and in slope; dense, no multiple of a tile.
_RANGE, _POINTS = 6.0, 1021

#: Formula to the largest error over its bound.
Fits = dict[str, float]


def run(case: FusedCase) -> Outcome:
    """Compare forward and gradients with every formula."""
    if not case.operator.has_formula:
        return Outcome()
    try:
        found = _fits(case)
    except KernelFailure as error:
        if not is_refusal(error):
            raise
        return _skipped(case, f"refused: {error}")
    return _skipped(case, NO_GRADIENT) if found is None else Outcome([_verdict(case, *found)])


def _skipped(case: FusedCase, reason: str) -> Outcome:
    return Outcome([case.finding(_CHECK, FindingStatus.SKIPPED, reason)])


def _fits(case: FusedCase) -> tuple[Fits, Fits] | None:
    """Return the fits of the result and of its gradients; None if there are none."""
    inputs = _inputs(case)
    arguments = leaves(inputs)
    result = case.call(arguments)
    dy = torch.ones_like(result)
    parts = gradients(result, arguments, dy)
    if parts is None:
        return None
    forward, backward = {}, {}
    for formula in FORMULAS:
        exact = case.operator.forward(inputs, formula, case.arithmetic)
        forward[formula] = _ratio(case, result, exact)
        rights = case.operator.backward(dy, inputs, formula, case.arithmetic)
        backward[formula] = max(
            _ratio(case, part, right)
            for part, right in zip(parts, rights, strict=True)
            if part is not None
        )
    return forward, backward


def _inputs(case: FusedCase) -> tuple[Tensor, ...]:
    """Return arguments that make the operator f(x) over ±6, else those of a small case."""
    spread = torch.linspace(-_RANGE, _RANGE, _POINTS, dtype=torch.float64)
    x = tensors.round_float64(spread, case.subject.fmt)
    alone = case.operator.identity(x.to(case.subject.device))
    if alone is not None:
        return alone
    return case.inputs(ladder.cubes(case.operator, (33,), case.job.seed)[0])


def _ratio(case: FusedCase, actual: Tensor, exact: Bounded) -> float:
    """Return the largest error over bound; NaN counts as infinite."""
    return judged(actual, exact, case.subject.fmt, case.contract, _CHECK).max_ratio


def _verdict(case: FusedCase, forward: Fits, backward: Fits) -> Finding:
    declared = case.job.formula
    shown = f"(error/bound: gradient {_shown(backward)}; forward {_shown(forward)})"
    nearest = min(backward, key=lambda name: backward[name])
    if not (backward[declared] <= 1) and backward[nearest] < backward[declared]:
        message = f"the gradient is nearer to the {nearest} formula than to {declared} {shown}"
        return case.finding(_CHECK, FindingStatus.FAILED, message)
    common = [name for name in FORMULAS if _is_near(forward, name) and _is_near(backward, name)]
    if not common:
        message = f"forward and gradient are of different formulas {shown}"
        return case.finding(_CHECK, FindingStatus.FAILED, message)
    message = f"forward and gradient are of {' or '.join(common)} {shown}"
    status = FindingStatus.PASSED if declared in common else FindingStatus.NOTED
    return case.finding(_CHECK, status, message)


def _is_near(fits: Fits, name: str) -> bool:
    """Tell whether a formula is within its bound, or the nearest of all: a small fault of another
    kind, told by other checks, does not make it another formula.
    """
    return fits[name] <= 1 or fits[name] == min(fits.values())


def _shown(fits: Fits) -> str:
    return ", ".join(f"{name} {figure(ratio)}" for name, ratio in fits.items())
