"""The child process that runs kernels: jobs in on stdin, events out as JSON lines."""

from __future__ import annotations

from functools import partial
from typing import IO

from gelu_verify.job import Job
from gelu_verify.kernels.telling import begin, tell, telling_errors
from gelu_verify.records import KernelResult


def serve(jobs: list[Job], events: IO[str]) -> None:
    """Run jobs in order and write an event before every check and after every job."""
    from gelu_verify import pipeline, provenance

    for index, job in enumerate(jobs):
        send = partial(tell, events, job=index)

        def progress(check: str, known: KernelResult, send: partial[None] = send) -> None:
            send("check", check=check, result=known.model_dump_json())

        result = pipeline.check(job, progress)
        found = result.model_dump_json() if result else None
        send("done", result=found, runtime=provenance.runtime(job.device))


def main() -> None:
    """Read a JSON list of jobs from stdin and serve."""
    request, events = begin()
    with telling_errors(events):
        serve([Job.model_validate(item) for item in request], events)
