"""Run one question over several cases, and say what failed, what was refused, or that all held."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from gelu_verify.checks.case import Outcome
from gelu_verify.checks.fused.case import FusedCase
from gelu_verify.inputs.problems import Problem
from gelu_verify.kernels.subject import KernelFailure, is_refusal
from gelu_verify.records import FindingStatus

#: Gives what is wrong in one case, a sentence each.
Question = Callable[[FusedCase, Problem], Sequence[str]]


def examine(
    case: FusedCase, check: str, problems: Sequence[Problem], question: Question, held: str
) -> Outcome:
    """Ask a question of every case; ``held`` is what to say where nothing is wrong.

    A fault that shows in several cases is told once, at the first. Refusals are noted; if every
    case is refused the check is skipped. Raises ``KernelFailure`` for any other failure.
    """
    outcome = Outcome()
    told: set[str] = set()
    refused: list[str] = []
    for problem in problems:
        try:
            faults = question(case, problem)
        except KernelFailure as error:
            if not is_refusal(error) or error.__cause__ is None:
                raise
            refused.append(f"{problem}: {error}")
            continue
        for fault in faults:
            # The kind of fault, without the figures of this case.
            kind = "".join(letter for letter in fault if not letter.isdigit())
            if kind not in told:
                told.add(kind)
                outcome.findings.append(case.finding(check, FindingStatus.FAILED, fault, problem))
    outcome.findings += [
        case.finding(check, FindingStatus.NOTED, f"refused: {text}") for text in refused
    ]
    if len(refused) == len(problems):
        outcome.findings.append(case.finding(check, FindingStatus.SKIPPED, "every case is refused"))
    elif not told:
        message = f"{held} ({len(problems) - len(refused)} cases)"
        outcome.findings.append(case.finding(check, FindingStatus.PASSED, message))
    return outcome
