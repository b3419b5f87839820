"""One hunt, in the process that runs the kernel: load it, search, describe what was found."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import mpmath
import torch

from gelu_verify import certification, describe, pipeline
from gelu_verify.errors import UnavailableError
from gelu_verify.hunt.climbing import at_most_every
from gelu_verify.hunt.evaluation import Evaluator
from gelu_verify.hunt.records import Found, HuntRequest, HuntResult, HuntStatus
from gelu_verify.hunt.search import Search
from gelu_verify.job import Job, reproduce
from gelu_verify.kernels.subject import KernelFailure, Subject, declines_format
from gelu_verify.measure.error import Class, measure
from gelu_verify.measure.summary import Sample

#: Called with the result as far as it is known, at most this often.
Progress = Callable[[HuntResult], None]
_PROGRESS_SECONDS = 1.0


def hunt(
    request: HuntRequest, progress: Progress, function: Callable[..., Any] | None = None
) -> HuntResult:
    """Search for the worst inputs of a kernel and return the largest errors found.

    function: the kernel itself, where it is at hand and need not be loaded by name.
    Exceptions of the kernel become a ``crashed`` result; usage errors propagate.
    """
    result = HuntResult.blank(request)
    progress(result)
    try:
        subject = pipeline.prepared(request.job, function)
    except UnavailableError as error:
        return result.ended(HuntStatus.UNAVAILABLE, str(error))
    if subject is not None and request.cases:
        from gelu_verify.hunt.cases.run import hunt_cases

        return hunt_cases(request, result, subject, progress)
    if not isinstance(subject, Subject):
        return result.ended(HuntStatus.UNAVAILABLE, "the kernel carries no gradient back to x")
    return _search(request, result, subject, progress)


def _search(
    request: HuntRequest, result: HuntResult, subject: Subject, progress: Progress
) -> HuntResult:
    started = time.monotonic()
    evaluator = Evaluator(subject, torch.Generator().manual_seed(request.job.seed))

    def known() -> HuntResult:
        return _with(result, request.job, evaluator, search, time.monotonic() - started)

    on_batch = at_most_every(_PROGRESS_SECONDS, lambda: progress(known()))
    search = Search(evaluator, request.job.seed, request.seconds, on_batch)
    try:
        search.run()
    except KernelFailure as error:
        if evaluator.measured == 0 and declines_format(error):
            message = f"the kernel does not take {subject.fmt.name}: {error}"
            return result.ended(HuntStatus.UNAVAILABLE, message)
        return known().ended(HuntStatus.CRASHED, str(error))
    return known().ended(HuntStatus.FINISHED)


def _with(
    result: HuntResult, job: Job, evaluator: Evaluator, search: Search, seconds: float
) -> HuntResult:
    worst, subject = evaluator.worst, evaluator.subject
    errors = [
        _found(job, subject, region.value, sample) for region, sample in worst.by_region.items()
    ]
    errors.sort(key=lambda found: -abs(found.point.error_ulp))
    lost = [
        _found(job, subject, region.value, sample)
        for _, (region, sample) in sorted(worst.by_class.items())
    ]
    return result.model_copy(
        update={
            "seconds": seconds,
            "kernel_inputs": evaluator.kernel_inputs,
            "measured": evaluator.measured,
            "stages": dict(search.stages),
            "found": (*lost, *errors),
            "certificate": certification.ORACLE,  # float64 only says where to look
        }
    )


def _found(job: Job, subject: Subject, region: str, sample: Sample) -> Found:
    """Describe a sample; its errors come from the oracle in every format."""
    fmt, operator = subject.fmt, subject.operator
    numbers = [fmt.decode(p & ((1 << fmt.bits) - 1)) for p in (*sample.inputs, sample.actual)]
    *inputs, actual = (torch.tensor([n], dtype=torch.float64).to(subject.dtype) for n in numbers)
    exact = operator.precise(tuple(inputs), subject.formula, fmt)
    errors = measure(actual, exact, fmt)
    measured = Sample(sample.inputs, sample.actual, float(errors.ulp[0]))
    point = describe.point(measured, operator, subject.formula, fmt)
    return Found(
        region=region,
        kind=Class(int(errors.classes[0])).label,
        point=point,
        relative_error=_relative(
            numbers[-1], describe.exact_value(numbers[:-1], operator, subject.formula)
        ),
        reproduce=reproduce(job, [tuple(point.bits.values())]),
    )


def _relative(actual: float, exact: Any) -> float:
    """Return ``|actual - exact| / |exact|``."""
    if exact == 0:
        return 0.0 if actual == 0 else float("inf")
    with mpmath.workprec(256):
        return float(abs((mpmath.mpf(actual) - exact) / exact))
