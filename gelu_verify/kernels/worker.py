"""The child process that runs kernels: jobs in on stdin, events out as JSON lines."""

from __future__ import annotations

import os
from functools import partial
from typing import IO

from gelu_verify.errors import GeluVerifyError
from gelu_verify.job import Job
from gelu_verify.kernels.telling import begin, tell
from gelu_verify.records import KernelResult


def serve(jobs: list[Job], events: IO[str]) -> None:
    """Run jobs in order and write an event before every check and after every job."""
    from gelu_verify import pipeline, provenance

    for index, job in enumerate(jobs):
        send = partial(tell, events, job=index)

        def progress(check: str, known: KernelResult, send: partial[None] = send) -> None:
            send("check", check=check, result=known.model_dump_json())

        try:
            result = pipeline.check(job, progress)
        except GeluVerifyError as error:
            send("error", message=str(error), exit_status=error.exit_status)
            return
        found = result.model_dump_json() if result else None
        send("done", result=found, runtime=provenance.runtime(job.device))


def main() -> None:
    """Read a JSON list of jobs from stdin and serve."""
    request, events = begin()
    # Nothing that Hypothesis notes is for the user's folder: no folder can be made below a file.
    os.environ["HYPOTHESIS_STORAGE_DIRECTORY"] = os.devnull
    serve([Job.model_validate(item) for item in request], events)


if __name__ == "__main__":
    main()
