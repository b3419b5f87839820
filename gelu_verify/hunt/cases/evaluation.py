"""Run a fused kernel on cases of a hunt, measure error over bound, remember the worst of each part.

A part is the result, or the gradient for one argument.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from torch import Tensor

from gelu_verify.checks.fused.case import FusedCase
from gelu_verify.checks.fused.differentiation import cotangent, gradients, leaves
from gelu_verify.checks.fused.ratios import Ratios, judged
from gelu_verify.hunt.climbing import UNSCORED
from gelu_verify.inputs.problems import Problem
from gelu_verify.kernels.subject import KernelFailure, is_refusal

#: log2 of error over bound, at most: an infinity where a number is due, a wrong kind of value.
MOST = 64.0
RESULT = "result"


@dataclass
class Worst:
    """The case with the largest error over bound of a part."""

    problem: Problem
    ratios: Ratios
    score: float


@dataclass
class CaseEvaluator:
    """The kernel as a function from cases to scores: log2 of the largest error over its bound."""

    case: FusedCase
    worst: dict[str, Worst] = field(default_factory=dict)
    at: Problem | None = None
    run: int = 0
    judged: int = 0
    refused: int = 0
    _differentiable: bool = True

    def score(self, problem: Problem) -> float:
        """Return the score of a case, the largest over the result and the gradients.

        Exact values are float64's, whose own error is in the bound: mpmath has the last word where
        a case is replayed. Raises ``KernelFailure`` for what is no refusal.
        """
        self.run += 1
        self.at = problem
        try:
            parts = self._parts(problem)
        except KernelFailure as error:
            if not is_refusal(error):
                raise
            self.refused += 1
            return UNSCORED
        self.judged += 1
        return max((self._remembered(name, problem, r) for name, r in parts.items()))

    def _parts(self, problem: Problem) -> dict[str, Ratios]:
        case = self.case
        inputs = case.inputs(problem)
        exact = case.operator.forward(inputs, case.job.formula, case.arithmetic)
        arguments = leaves(inputs) if self._differentiable else inputs
        result = case.call(arguments)
        fmt, contract, text = case.subject.fmt, case.contract, str(problem)
        found = {RESULT: judged(result, exact, fmt, contract, text)}
        if self._differentiable:
            found |= self._gradients(problem, inputs, arguments, result)
        return found

    def _gradients(
        self,
        problem: Problem,
        inputs: tuple[Tensor, ...],
        arguments: tuple[Tensor, ...],
        result: Tensor,
    ) -> dict[str, Ratios]:
        """Return the ratios of the gradients; none, and never again, if the kernel has none."""
        case = self.case
        dy = cotangent(case, problem, result)
        parts = gradients(result, arguments, dy)
        if parts is None:
            self._differentiable = False
            return {}
        exact = case.operator.backward(dy, inputs, case.job.formula, case.arithmetic)
        fmt, contract, text = case.subject.fmt, case.contract, str(problem)
        return {
            f"d{name}": judged(part, right, fmt, contract, text, kinds=False)
            for name, part, right in zip(case.operator.arguments, parts, exact, strict=True)
            if part is not None
        }

    def _remembered(self, name: str, problem: Problem, ratios: Ratios) -> float:
        score = _score(ratios)
        known = self.worst.get(name)
        if score > UNSCORED and (known is None or score > known.score):
            self.worst[name] = Worst(problem, ratios, score)
        return score


def _score(ratios: Ratios) -> float:
    """Return log2 of error over bound; a broken element without a distance counts as the most."""
    if not ratios.elements and not ratios.broken:
        return UNSCORED
    if ratios.broken and not ratios.max_ratio > 1:
        return MOST
    return min(math.log2(max(ratios.max_ratio, 2.0**-60)), MOST)
