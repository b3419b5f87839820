"""Run the usual tests in a child process: a defect may crash or hang on unit normals, too."""

from __future__ import annotations

import tempfile

from gelu_verify.job import Job
from gelu_verify.kernels.listener import Ended, Limits, Listener
from gelu_verify.records import UsualVerdict
from gelu_verify.selftest import usual

_WORKER = "gelu_verify.selftest.usual_worker"


def run(jobs: list[Job], limits: Limits) -> list[tuple[UsualVerdict, ...]]:
    """Return the verdicts on each job's kernel; one that ends its child costs only itself."""
    found: list[tuple[UsualVerdict, ...]] = []
    while len(found) < len(jobs):
        found += _in_one_child(jobs[len(found) :], limits)
    return found


def _in_one_child(jobs: list[Job], limits: Limits) -> list[tuple[UsualVerdict, ...]]:
    """Return the verdicts up to the first kernel that ends its child or goes beyond a limit."""
    found: list[tuple[UsualVerdict, ...]] = []
    request = [job.model_dump(mode="json") for job in jobs]
    with (
        tempfile.TemporaryFile("w+", errors="replace") as stderr,
        Listener(_WORKER, request, jobs[0].device, limits, stderr) as child,
    ):
        try:
            while len(found) < len(jobs):
                event = child.next()
                if event["event"] == "done":
                    found.append(tuple(map(UsualVerdict.model_validate, event["verdicts"])))
        except Ended as ended:
            return [*found, usual.crashed(ended.what)]
    return found
