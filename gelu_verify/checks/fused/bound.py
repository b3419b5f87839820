"""Bound: the error of every element of every case, over what the derived bound allows."""

from __future__ import annotations

from gelu_verify.checks.case import Outcome
from gelu_verify.checks.fused import long_rows
from gelu_verify.checks.fused.case import FusedCase
from gelu_verify.checks.fused.ratios import Ratios, judged_result
from gelu_verify.inputs.problems import Problem
from gelu_verify.kernels.subject import KernelFailure, declines_format, is_refusal
from gelu_verify.records import Finding, FindingStatus
from gelu_verify.report.numbers import figure


def run(case: FusedCase) -> Outcome:
    """Judge every case; the worst elements again in mpmath."""
    outcome = Outcome()
    found = Ratios()
    refused: dict[str, list[Problem]] = {}
    for problem in case.problems:
        try:
            ratios = _one(case, problem)
        except KernelFailure as error:
            if not is_refusal(error):
                raise
            if len(case.problems) == 1 or declines_format(error):
                raise
            refused.setdefault(str(error), []).append(problem)
            case.refused.add(problem)
            continue
        found.add(ratios)
    outcome.findings += [_refusal(case, text, declined) for text, declined in refused.items()]
    if found.elements:
        outcome.fields["bound"] = found.as_record(case.arithmetic)
    outcome.findings += _verdict(case, found)
    return outcome


def _refusal(case: FusedCase, text: str, declined: list[Problem]) -> Finding:
    message = f"refused {len(declined)} of {len(case.problems)} cases: {text}"
    return case.finding("bound", FindingStatus.NOTED, message, declined[0])


def _one(case: FusedCase, problem: Problem) -> Ratios:
    if case.is_long(problem):
        return long_rows.judged(case, problem)
    inputs = case.inputs(problem)
    formula, arithmetic = case.job.formula, case.arithmetic
    return judged_result(
        case.operator, formula, inputs, case.call(inputs), arithmetic, str(problem)
    )


def _verdict(case: FusedCase, found: Ratios) -> list[Finding]:
    if not found.elements:
        message = "no case gives an element that can be judged"
        return [case.finding("bound", FindingStatus.FAILED, message)]
    findings = []
    if not found.informative:
        message = (
            f"no evidence: none of {found.elements:,} elements of {found.cases} cases could tell a "
            "fault (all are zero, saturated, or smaller than their bound); add a case with "
            "values=normal"
        )
        findings.append(case.finding("bound", FindingStatus.FAILED, message))
    if told := found.told():
        text, message = told
        failed = FindingStatus.FAILED
        findings.append(case.finding("bound", failed, message, text, found.max_ratio))
    if not findings:
        message = (
            f"{found.elements:,} elements of {found.cases} cases within their bound; "
            f"at most {figure(found.max_ratio)} of it{_without_evidence(found)}"
        )
        findings.append(case.finding("bound", FindingStatus.PASSED, message))
    return findings


def _without_evidence(found: Ratios) -> str:
    """Say how many cases had to hold but tell nothing, in a clause; nothing if there are none."""
    count = sum(not one.informative for one in found.by_case)
    return f"; {count} of the cases are no evidence (empty, zero, saturated)" if count else ""
