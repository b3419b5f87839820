"""Gradient: what autograd gives for every argument, over the derived bound."""

from __future__ import annotations

from torch import Tensor

from gelu_verify.checks.case import Outcome
from gelu_verify.checks.fused.case import FusedCase
from gelu_verify.checks.fused.differentiation import (
    NO_GRADIENT,
    Gradients,
    cotangent,
    gradients,
    leaves,
)
from gelu_verify.checks.fused.ratios import Ratios, judged
from gelu_verify.inputs.problems import Problem
from gelu_verify.records import Finding, FindingStatus, GradientAccuracy
from gelu_verify.report.numbers import figure


def run(case: FusedCase) -> Outcome:
    """Judge the gradients of every case, where the kernel has any."""
    outcome = Outcome()
    if not case.accepted:
        message = "no case that this check can judge"
        outcome.findings.append(case.finding("gradient", FindingStatus.SKIPPED, message))
        return outcome
    found = {name: Ratios() for name in case.operator.arguments}
    for problem in case.accepted:
        inputs = case.inputs(problem)
        given = _gradients(case, problem, inputs)
        if given is None:
            skipped = case.finding("gradient", FindingStatus.SKIPPED, NO_GRADIENT)
            outcome.findings.append(skipped)
            return outcome
        dy, parts = given
        exact = case.operator.backward(dy, inputs, case.job.formula, case.arithmetic)
        for name, part, right in zip(found, parts, exact, strict=True):
            if part is None:
                message = f"no gradient reaches {name}"
                finding = case.finding("gradient", FindingStatus.FAILED, message, problem)
                outcome.findings.append(finding)
                continue
            fmt = case.subject.fmt
            ratios = judged(part, right, fmt, case.contract, str(problem), kinds=False)
            found[name].add(ratios)
    outcome.fields["gradients"] = tuple(
        GradientAccuracy(argument=name, bound=ratios.as_record(case.arithmetic))
        for name, ratios in found.items()
        if ratios.elements
    )
    outcome.findings += _verdicts(case, found)
    return outcome


def _gradients(
    case: FusedCase, problem: Problem, inputs: tuple[Tensor, ...]
) -> tuple[Tensor, Gradients] | None:
    """Return dy and the gradient of each argument; None if the kernel offers none."""
    arguments = leaves(inputs)
    result = case.call(arguments)
    dy = cotangent(case, problem, result)
    parts = gradients(result, arguments, dy)
    return None if parts is None else (dy, parts)


def _verdicts(case: FusedCase, found: dict[str, Ratios]) -> list[Finding]:
    if not any(ratios.elements for ratios in found.values()):
        message = "no case gives an element that can be judged"
        return [case.finding("gradient", FindingStatus.FAILED, message)]
    findings = []
    for name, ratios in found.items():
        if told := ratios.told():
            text, message = told
            failed, said = FindingStatus.FAILED, f"d{name}: {message}"
            findings.append(case.finding("gradient", failed, said, text, ratios.max_ratio))
    if not findings:
        shown = ", ".join(f"d{name} {figure(r.max_ratio)}" for name, r in found.items())
        message = f"within their bounds; at most {shown} of it"
        findings.append(case.finding("gradient", FindingStatus.PASSED, message))
    return findings
