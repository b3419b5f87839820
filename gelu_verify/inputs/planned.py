"""The inputs that a job asks for."""

from __future__ import annotations

from gelu_verify import formats, operators
from gelu_verify.inputs import hard_cases, sweep
from gelu_verify.job import Job


def sweep_of(job: Job) -> sweep.Sweep:
    """Return the sweep of an elementwise job, hard cases included, or what it replays."""
    fmt = formats.get(job.format)
    arguments = operators.get(job.operator).arguments
    if job.replay:
        return sweep.replay(fmt, job.replay, operators.place(arguments))
    hard = hard_cases.patterns(job.operator, fmt)
    return sweep.build(fmt, arguments, sweep.Depth(job.depth), job.seed, hard)
