"""The child process that runs kernels: jobs in on stdin, events out as JSON lines.

A kernel that prints writes to stderr here, so that it cannot disturb the events.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
import threading
import time
from typing import IO

from gelu_verify.errors import GeluVerifyError
from gelu_verify.job import Job
from gelu_verify.kernels import activity
from gelu_verify.kernels.orphans import leave_with_parent
from gelu_verify.records import KernelResult

_TICK_SECONDS = 0.25
_LOCK = threading.Lock()


def serve(jobs: list[Job], events: IO[str]) -> None:
    """Run jobs in order and write an event before every check and after every job."""
    from gelu_verify import pipeline, provenance

    def send(kind: str, index: int, **content: object) -> None:
        _write(events, {"event": kind, "job": index, **content})

    for index, job in enumerate(jobs):

        def progress(check: str, partial: KernelResult, index: int = index) -> None:
            send("check", index, check=check, result=partial.model_dump_json())

        try:
            result = pipeline.check(job, progress)
        except GeluVerifyError as error:
            send("error", index, message=str(error), exit_status=error.exit_status)
            return
        send(
            "done",
            index,
            result=result.model_dump_json() if result else None,
            runtime=provenance.runtime(job.device),
        )


def _write(events: IO[str], event: dict[str, object]) -> None:
    with _LOCK:
        events.write(json.dumps(event) + "\n")
        events.flush()


def _tell_time(events: IO[str]) -> None:
    """Say again and again whose time it was since the last event: the kernel's or our own."""
    while True:
        time.sleep(_TICK_SECONDS)
        with contextlib.suppress(OSError):
            _write(events, {"event": "busy" if activity.running() else "own"})


def main() -> None:
    """Read a JSON list of jobs from stdin, give the kernel a stdout of no consequence, serve."""
    leave_with_parent()
    jobs = [Job.model_validate(item) for item in json.load(sys.stdin)]
    events = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    threading.Thread(target=_tell_time, args=(events,), daemon=True).start()
    # Nothing that Hypothesis notes is for the user's folder: no folder can be made below a file.
    os.environ["HYPOTHESIS_STORAGE_DIRECTORY"] = os.devnull
    serve(jobs, events)


if __name__ == "__main__":
    main()
