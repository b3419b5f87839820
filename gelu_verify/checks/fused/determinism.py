"""Determinism: the same call gives the same bits, whatever ran between."""

from __future__ import annotations

import torch

from gelu_verify.checks.case import Outcome
from gelu_verify.checks.fused.aliasing import Results, results
from gelu_verify.checks.fused.case import FusedCase
from gelu_verify.checks.fused.difference import difference
from gelu_verify.checks.fused.examine import examine
from gelu_verify.inputs.problems import Problem, ladder
from gelu_verify.records import FindingStatus

_SIZES = (17, 64, 129)
_REPEATS = 4


def run(case: FusedCase) -> Outcome:
    """Repeat calls at a few sizes; where the kernel declares that they differ, say whether so."""
    sizes = ladder.cubes(case.operator, _SIZES, case.job.seed)
    held = f"{_REPEATS} repeats, with other calls between, bit for bit the same"
    outcome = examine(case, "determinism", case.asked_or(sizes), _faults, held)
    reason = case.job.spec.nondeterministic
    if reason:
        outcome.findings = [
            finding.model_copy(
                update={
                    "status": FindingStatus.NOTED,
                    "message": f"{finding.message}. Declared: {reason}",
                    "reproduce": None,
                }
            )
            if finding.status is FindingStatus.FAILED
            else finding
            for finding in outcome.findings
        ]
    return outcome


def _faults(case: FusedCase, problem: Problem) -> list[str]:
    """Compare repeats with the first call: at once, after another size, after freed memory."""
    inputs = case.inputs(problem)
    first = _copied(results(case, problem, inputs))
    found: list[str] = []
    for repeat in range(1, _REPEATS + 1):
        if repeat % 2 == 0:
            _disturb(case, problem)
        for name, part in results(case, problem, inputs).items():
            differs = difference(first[name], part, case.subject.fmt)
            if differs:
                found.append(f"{name} of the same call differs, repeat {repeat}: in {differs}")
        if found:
            break
    return found


def _copied(given: Results) -> Results:
    return {name: part.clone() for name, part in given.items()}


def _disturb(case: FusedCase, problem: Problem) -> None:
    """Call at another size, and leave NaN in memory that the next call may be given."""
    name, size = problem.dims[0]
    other = case.inputs(ladder.resized(problem, name, 2 * size))
    results(case, problem, other)
    for part in other:
        part.detach().clone().fill_(torch.nan)
