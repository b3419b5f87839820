"""Run the usual tests in a child process: a defect may crash or hang on unit normals, too."""

from __future__ import annotations

import queue
import tempfile
import threading

from gelu_verify.job import Job
from gelu_verify.kernels import child as process
from gelu_verify.kernels.isolation import WorkerError
from gelu_verify.records import UsualVerdict
from gelu_verify.selftest import usual

_WORKER = "gelu_verify.selftest.usual_worker"
#: Starting Python and importing torch may take this long.
_START_UP_SECONDS = 120.0


def run(jobs: list[Job], seconds: float) -> list[tuple[UsualVerdict, ...]]:
    """Return the verdicts on each job's kernel; one that ends its child costs only itself."""
    found: list[tuple[UsualVerdict, ...]] = []
    while len(found) < len(jobs):
        found += _in_one_child(jobs[len(found) :], seconds)
    return found


def _in_one_child(jobs: list[Job], seconds: float) -> list[tuple[UsualVerdict, ...]]:
    """Return the verdicts up to the first kernel that ends its child or gives no answer."""
    found: list[tuple[UsualVerdict, ...]] = []
    with tempfile.TemporaryFile("w+", errors="replace") as stderr:
        request = [job.model_dump(mode="json") for job in jobs]
        child = process.spawn(_WORKER, request, jobs[0].device, stderr)
        events: process.Events = queue.Queue()
        threading.Thread(target=process.read, args=(child, events), daemon=True).start()
        try:
            while len(found) < len(jobs):
                event = events.get(timeout=seconds if found else seconds + _START_UP_SECONDS)
                if event is None:
                    return [*found, usual.crashed(process.death(child, stderr))]
                if event["event"] == "error":
                    raise WorkerError(event["message"], event["exit_status"])
                found.append(tuple(map(UsualVerdict.model_validate, event["verdicts"])))
        except queue.Empty:
            return [*found, usual.crashed(f"no answer within {seconds:g} s")]
        finally:
            process.kill(child)
    return found
