"""One hunt over the cases of a fused kernel, in the process that runs it."""

from __future__ import annotations

import time
from collections.abc import Callable

from gelu_verify.checks.fused.case import FusedCase
from gelu_verify.hunt.cases.evaluation import RESULT, CaseEvaluator, Worst
from gelu_verify.hunt.cases.search import CaseSearch
from gelu_verify.hunt.climbing import at_most_every
from gelu_verify.hunt.records import FoundCase, HuntRequest, HuntResult, HuntStatus
from gelu_verify.job import reproduce
from gelu_verify.kernels.subject import Callee, KernelFailure, declines_format

#: Called with the result as far as it is known, at most this often.
Progress = Callable[[HuntResult], None]
_PROGRESS_SECONDS = 0.5


def hunt_cases(
    request: HuntRequest, result: HuntResult, subject: Callee, progress: Progress
) -> HuntResult:
    """Search for the cases of the largest error over bound and return the worst of each part.

    Exceptions of the kernel become a ``crashed`` result.
    """
    started = time.monotonic()
    evaluator = CaseEvaluator(FusedCase(request.job, subject))

    def known() -> HuntResult:
        return _with(result, evaluator, search, time.monotonic() - started)

    on_case = at_most_every(_PROGRESS_SECONDS, lambda: progress(known()))
    search = CaseSearch(evaluator, request.job.seed, request.seconds, on_case)
    try:
        search.run()
    except KernelFailure as error:
        if not evaluator.judged and declines_format(error):
            message = f"the kernel does not take {subject.fmt.name}: {error}"
            return result.ended(HuntStatus.UNAVAILABLE, message)
        return known().ended(HuntStatus.CRASHED, f"{error} (case {evaluator.at})")
    if not evaluator.judged:
        message = f"the kernel refused all of {evaluator.run} cases"
        return result.ended(HuntStatus.UNAVAILABLE, message)
    return known().ended(HuntStatus.FINISHED)


def _with(
    result: HuntResult, evaluator: CaseEvaluator, search: CaseSearch, seconds: float
) -> HuntResult:
    worst = sorted(evaluator.worst.items(), key=lambda item: -item[1].score)
    return result.model_copy(
        update={
            "seconds": seconds,
            "kernel_inputs": evaluator.run,
            "measured": evaluator.judged,
            "stages": dict(search.stages),
            "cases": tuple(_found(evaluator.case, part, one) for part, one in worst),
        }
    )


def _found(case: FusedCase, part: str, worst: Worst) -> FoundCase:
    text, ratios = str(worst.problem), worst.ratios
    return FoundCase(
        part=part,
        check="bound" if part == RESULT else "gradient",
        case=text,
        elements=ratios.elements,
        broken=ratios.broken,
        ratio=ratios.max_ratio,
        point=ratios.worst,
        message=ratios.faults.get(text),
        reproduce=reproduce(case.job, cases=(text,)),
    )
