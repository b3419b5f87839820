"""A check of all 2^32 inputs, or pairs: a quick one, the campaign, then one with its census."""

from __future__ import annotations

from collections.abc import Callable

from gelu_verify.campaign.pair_shard import is_of_pairs
from gelu_verify.campaign.run import CampaignStopped
from gelu_verify.job import Job, reproduce
from gelu_verify.records import Finding, FindingStatus, KernelResult, Status

Check = Callable[[Job], KernelResult | None]

_ENDED = (Status.CRASHED, Status.TIMED_OUT, Status.UNAVAILABLE)


def is_swept(job: Job) -> bool:
    """Tell whether a job is for a campaign: one argument of 32 bits (a backward with dy = 1), or
    two of 16. Fewer inputs fit in memory, 2^64 nowhere.
    """
    if job.depth != "exhaustive" or job.replay:
        return False
    has_one = job.operator in ("gelu", "gelu_backward")
    return is_of_pairs(job) or (job.format == "fp32" and has_one)


def check(job: Job, run_checks: Check, campaign: Callable[[], str]) -> KernelResult | None:
    """Return the result of a job over every input; None if it does not apply to the kernel.

    A kernel that cannot be run, or gives no figures, is not swept: the quick check says why. One
    that stops the campaign keeps what the quick check learnt.
    """
    quick = run_checks(job.model_copy(update={"depth": "quick", "speed": False}))
    if quick is None or quick.status in _ENDED or quick.accuracy is None:
        return quick
    try:
        census = campaign()
    except CampaignStopped as stop:
        return _stopped(job, quick, stop)
    return run_checks(job.model_copy(update={"census": census}))


def _stopped(job: Job, known: KernelResult, stop: CampaignStopped) -> KernelResult:
    finding = Finding(
        check="accuracy",
        status=FindingStatus.FAILED,
        message=str(stop),
        reproduce=reproduce(job),
    )
    return known.model_copy(
        update={
            "status": Status.TIMED_OUT if stop.timed_out else Status.CRASHED,
            "findings": (*known.findings, finding),
        }
    )
