"""Run one question over several cases, and say what failed, what was refused, or that all held."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from gelu_verify.checks.case import Outcome
from gelu_verify.checks.fused.case import FusedCase
from gelu_verify.inputs.problems import Problem
from gelu_verify.kernels.subject import KernelFailure, is_refusal
from gelu_verify.records import FindingStatus

#: Gives what is wrong in one case, a sentence each; None where there is nothing to ask about.
Question = Callable[[FusedCase, Problem], Sequence[str] | None]


def examine(
    case: FusedCase,
    check: str,
    problems: Sequence[Problem],
    question: Question,
    held: str,
    absent: str = "every case is refused",
) -> Outcome:
    """Ask a question of every case; ``held`` is what to say where nothing is wrong.

    A fault that shows in several cases (the same up to a colon, but for figures) is told once, at
    the first. Refusals are noted; if no case
    could be asked the check is skipped, for the reason ``absent``. Raises ``KernelFailure`` for any
    failure that is no refusal.
    """
    if not problems:
        message = "no case that this check can judge"
        return Outcome([case.finding(check, FindingStatus.SKIPPED, message)])
    outcome = Outcome()
    told: set[str] = set()
    refused: list[str] = []
    asked = 0
    for problem in problems:
        try:
            faults = question(case, problem)
        except KernelFailure as error:
            if not is_refusal(error):
                raise
            refused.append(f"{problem}: {error}")
            continue
        asked += faults is not None
        for fault in faults or ():
            # The kind of fault: without the figures of this case, and what follows a colon.
            kind = "".join(c for c in fault.partition(":")[0] if not c.isdigit() and c != ",")
            if kind not in told:
                told.add(kind)
                outcome.findings.append(case.finding(check, FindingStatus.FAILED, fault, problem))
    outcome.findings += [
        case.finding(check, FindingStatus.NOTED, f"refused: {text}") for text in refused
    ]
    if not asked:
        outcome.findings.append(case.finding(check, FindingStatus.SKIPPED, absent))
    elif not told:
        outcome.findings.append(
            case.finding(check, FindingStatus.PASSED, f"{held} ({asked} cases)")
        )
    return outcome
