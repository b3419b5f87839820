"""Bound: the error of every element of every case, over what the derived bound allows."""

from __future__ import annotations

from gelu_verify.checks.case import Outcome
from gelu_verify.checks.fused.case import FusedCase
from gelu_verify.checks.fused.ratios import Ratios, judged
from gelu_verify.inputs.problems import Problem
from gelu_verify.kernels.subject import KernelFailure, is_refusal
from gelu_verify.records import Finding, FindingStatus
from gelu_verify.report.numbers import figure


def run(case: FusedCase) -> Outcome:
    """Judge every case; the worst elements again in mpmath."""
    outcome = Outcome()
    found = Ratios()
    refused: list[str] = []
    for problem in case.problems:
        try:
            ratios = _one(case, problem)
        except KernelFailure as error:
            if not is_refusal(error) or error.__cause__ is None:
                raise
            refused.append(f"{problem}: {error}")
            continue
        found.add(ratios)
    outcome.findings += [
        case.finding("bound", FindingStatus.NOTED, f"refused: {text}") for text in refused
    ]
    if found.elements:
        outcome.fields["bound"] = found.as_record(case.arithmetic)
    outcome.findings += _verdict(case, found)
    return outcome


def _one(case: FusedCase, problem: Problem) -> Ratios:
    inputs = case.inputs(problem)
    actual = case.call(inputs)
    exact = case.operator.forward(inputs, case.job.formula, case.arithmetic)

    def precise(index: tuple[int, ...]) -> object:
        return case.operator.precise(inputs, case.job.formula, index)

    return judged(actual, exact, case.subject.fmt, case.contract, str(problem), precise)


def _verdict(case: FusedCase, found: Ratios) -> list[Finding]:
    if not found.elements:
        message = "no case gives an element that can be judged"
        return [case.finding("bound", FindingStatus.FAILED, message)]
    findings = []
    for text, message in found.faults.items():
        problem = next((p for p in case.problems if str(p) == text), None)
        findings.append(case.finding("bound", FindingStatus.FAILED, message, problem))
    if not findings:
        message = (
            f"{found.elements:,} elements of {found.cases} cases within their bound; "
            f"at most {figure(found.max_ratio)} of it"
        )
        findings.append(case.finding("bound", FindingStatus.PASSED, message))
    return findings
