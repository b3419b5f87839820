"""inputs → kernel under test → exact value → error measure → statistics → verdict → record.

The one place that joins the stages. It runs in the child process (or in this one, with
``--in-process``) and tells what it has learnt after every check, so that a crash loses nothing.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import torch

from gelu_verify import checks, formats, operators, speed
from gelu_verify.checks import fused as checks_fused
from gelu_verify.checks.case import Case, Outcome
from gelu_verify.checks.fused import FusedCase
from gelu_verify.errors import UnavailableError
from gelu_verify.inputs import planned
from gelu_verify.job import Job, blank
from gelu_verify.kernels import canary, loading
from gelu_verify.kernels.subject import (
    Callee,
    KernelFailure,
    ResultFault,
    Subject,
    declines_format,
    differentiable,
    through_autograd,
)
from gelu_verify.known_issues import apply_known_issues
from gelu_verify.records import Finding, FindingStatus, KernelResult, Status

#: Called with the name of the check that starts and the result as far as it is known.
Progress = Callable[[str, KernelResult], None]


def check(
    job: Job, progress: Progress, function: Callable[..., Any] | None = None
) -> KernelResult | None:
    """Run every check of a job; None if the job is a backward that the kernel does not have.

    function: the kernel itself, where it is at hand and need not be loaded by name.
    Exceptions of the kernel become a ``crashed`` result; usage errors propagate.
    """
    started = time.perf_counter()
    result = blank(job)
    progress("loading", result)
    try:
        subject = prepared(job, function)
    except UnavailableError as error:
        return unavailable(result, str(error))
    if subject is None:
        return None
    findings: list[Finding] = []
    fields: dict[str, Any] = {}
    for name, case, run in _checks(job, subject):
        progress(name, _with(result, subject, findings, fields, started))
        try:
            outcome = run(case)
        except KernelFailure as error:
            return _stopped(_with(result, subject, findings, fields, started), case, name, error)
        findings += outcome.findings
        fields |= outcome.fields
    findings += _canaries(case).findings
    return _concluded(_with(result, subject, findings, fields, started), job)


def _checks(job: Job, subject: Callee) -> list[tuple[str, Any, Callable[[Any], Outcome]]]:
    """Return name, case and function of every check that a job has."""
    found: list[tuple[str, Any, Callable[[Any], Outcome]]] = []
    if isinstance(subject, Subject) and not job.cases:
        case = Case(job, subject, planned.sweep_of(job))
        found += [(name, case, run) for name, run in checks.of(job).items()]
    if job.is_fused and not job.replay:
        of_fused = FusedCase(job, subject)
        found += [(name, of_fused, run) for name, run in checks_fused.of(job).items()]
    if job.speed and found:
        # Last, because it says nothing of right and wrong; the case of a fused operator, if any.
        found.append(("speed", found[-1][1], speed.run))
    return found


def unavailable(result: KernelResult, reason: str) -> KernelResult:
    """Return a result that says why nothing could be checked."""
    finding = Finding(check="loading", status=FindingStatus.SKIPPED, message=reason)
    return result.model_copy(update={"status": Status.UNAVAILABLE, "findings": (finding,)})


def prepared(job: Job, function: Callable[..., Any] | None) -> Callee | None:
    """Return the kernel of a job, ready to be called; None for a backward that it does not have.

    Raises UnavailableError where the device is not there or not declared.
    """
    device = torch.device(job.device)
    if device.type == "cuda" and not torch.cuda.is_available():
        raise UnavailableError(
            f"device: got {job.device}, expected a machine with a CUDA device. Use --device cpu."
        )
    if device.type == "cuda" and (device.index or 0) >= torch.cuda.device_count():
        raise UnavailableError(
            f"device: got {job.device}, expected one of {torch.cuda.device_count()}: "
            f"cuda:0 to cuda:{torch.cuda.device_count() - 1}."
        )
    if device.type not in job.spec.devices:
        raise UnavailableError(
            f"device: got {job.device}, kernel {job.spec.name} declares "
            f"{', '.join(job.spec.devices)}."
        )
    arguments = operators.arguments("gelu" if job.via else job.operator)
    if function is None:
        function = loading.load(job.spec, arguments)
    else:
        loading.require_signature(function, job.spec.name, arguments)
    declared = (job.spec.name, job.formula, formats.get(job.format), device, function)
    if job.operator not in operators.OPERATORS:
        return Callee(*declared)
    subject = Subject(*declared, operators.get(job.operator), job.via)
    if job.via:
        if not differentiable(subject):
            return None
        subject.forward, subject.function = function, through_autograd(function)
    return subject


def _canaries(case: Case | FusedCase) -> Outcome:
    """Say whether the interpreter a kernel ran in can be believed."""
    if not case.subject.simulated:
        return Outcome()
    broken = [name for name in canary.REQUIRED if not canary.results()[name]]
    if broken:
        message = f"Triton's interpreter gets {', '.join(broken)} wrong: no figure here counts"
        return Outcome([case.finding("simulator", FindingStatus.FAILED, message)])
    message = "ran in Triton's CPU interpreter (simulated); its canary kernels are right"
    return Outcome([case.finding("simulator", FindingStatus.NOTED, message)])


def _with(
    result: KernelResult,
    subject: Callee,
    findings: list[Finding],
    fields: dict[str, Any],
    started: float,
) -> KernelResult:
    return result.model_copy(
        update={
            **fields,
            "findings": tuple(findings),
            "simulated": subject.simulated,
            "seconds": time.perf_counter() - started,
            "kernel_seconds": subject.seconds,
        }
    )


def _stopped(
    result: KernelResult, case: Case | FusedCase, check: str, error: KernelFailure
) -> KernelResult:
    """Return the result of a kernel that raised: unavailable if it declined, else crashed."""
    if result.accuracy is None and declines_format(error):
        return unavailable(result, f"the kernel does not take {case.subject.fmt.name}: {error}")
    finding = case.finding(check, FindingStatus.FAILED, str(error))
    return result.model_copy(
        update={
            "status": Status.FAILED if isinstance(error, ResultFault) else Status.CRASHED,
            "findings": (*result.findings, finding),
        }
    )


def _concluded(result: KernelResult, job: Job) -> KernelResult:
    findings = apply_known_issues(result.findings, job)
    found = {finding.status for finding in findings}
    status = Status.PASSED
    if FindingStatus.FAILED in found:
        status = Status.FAILED
    elif FindingStatus.KNOWN_ISSUE in found:
        status = Status.KNOWN_ISSUE
    # Built anew, not copied: a result that holds without evidence must not come into being.
    return KernelResult(**dict(result) | {"findings": findings, "status": status})
