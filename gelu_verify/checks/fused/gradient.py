"""Gradient: what autograd gives for every argument, over the derived bound."""

from __future__ import annotations

import torch
from torch import Tensor

from gelu_verify.checks.case import Outcome
from gelu_verify.checks.fused.case import FusedCase
from gelu_verify.checks.fused.ratios import Ratios, judged
from gelu_verify.formats import tensors
from gelu_verify.inputs.problems import Problem
from gelu_verify.kernels.failure import ResultFault, failure
from gelu_verify.records import Finding, FindingStatus, GradientAccuracy
from gelu_verify.report.numbers import figure


def run(case: FusedCase) -> Outcome:
    """Judge the gradients of every case, where the kernel has any."""
    outcome = Outcome()
    found = {name: Ratios() for name in case.operator.arguments}
    for problem in case.problems:
        inputs = case.inputs(problem)
        gradients = _gradients(case, problem, inputs)
        if gradients is None:
            message = "the kernel has no gradient"
            outcome.findings.append(case.finding("gradient", FindingStatus.SKIPPED, message))
            return outcome
        dy, parts = gradients
        exact = case.operator.backward(dy, inputs, case.job.formula, case.arithmetic)
        for name, part, right in zip(found, parts, exact, strict=True):
            if part is None:
                message = f"no gradient reaches {name}"
                finding = case.finding("gradient", FindingStatus.FAILED, message, problem)
                outcome.findings.append(finding)
                continue
            ratios = judged(part, right, case.subject.fmt, case.contract, str(problem))
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
) -> tuple[Tensor, tuple[Tensor | None, ...]] | None:
    """Return dy and the gradient of each argument; None if the result carries none."""
    leaves = tuple(part.detach().requires_grad_() for part in inputs)
    result = case.call(leaves)
    if result.grad_fn is None:
        return None
    generator = torch.Generator().manual_seed(problem.seed + 1)
    dy = torch.randn(result.shape, generator=generator, dtype=torch.float64)
    fmt = case.subject.fmt
    dy = (dy if fmt.bits == 64 else tensors.round_float64(dy, fmt)).to(result.device)
    try:
        parts = torch.autograd.grad(result, leaves, dy, allow_unused=True)
    except (Exception, SystemExit) as error:
        raise failure(error) from error
    for leaf, part in zip(leaves, parts, strict=True):
        if part is not None and part.shape != leaf.shape:
            raise ResultFault(
                f"gradient: got shape {tuple(part.shape)}, expected {tuple(leaf.shape)}. "
                "A gradient has the shape of its argument."
            )
    return dy, parts


def _verdicts(case: FusedCase, found: dict[str, Ratios]) -> list[Finding]:
    findings = []
    for name, ratios in found.items():
        for text, message in ratios.faults.items():
            problem = next((p for p in case.problems if str(p) == text), None)
            said = f"d{name}: {message}"
            findings.append(case.finding("gradient", FindingStatus.FAILED, said, problem))
    if not findings:
        shown = ", ".join(f"d{name} {figure(r.max_ratio)}" for name, r in found.items())
        message = f"within their bounds; at most {shown} of it"
        findings.append(case.finding("gradient", FindingStatus.PASSED, message))
    return findings
