"""Run a hunt in a child process, so that a kernel can crash or hang and its finds are not lost."""

from __future__ import annotations

import queue
import tempfile
import threading
import time
from collections.abc import Callable
from typing import IO, Any

from gelu_verify import provenance
from gelu_verify.hunt.records import HuntReport, HuntRequest, HuntResult, HuntStatus
from gelu_verify.kernels import child as process
from gelu_verify.kernels.isolation import WorkerError

#: Called with the result as far as it is known.
Progress = Callable[[HuntResult], None]

_WORKER = "gelu_verify.hunt.worker"
_POLL_SECONDS = 0.2
#: Starting Python and importing torch may take this long, whatever the limit on silence.
_START_UP_SECONDS = 120.0


def run(request: HuntRequest, silence: float, progress: Progress) -> HuntReport:
    """Hunt in a child; one that dies or is silent for ``silence`` seconds ends the hunt.

    So does Ctrl-C: the result is what was known by then.
    """
    with tempfile.TemporaryFile("w+", errors="replace") as stderr:
        result, runtime = _listen(request, silence, progress, stderr)
    return HuntReport(environment=provenance.environment(runtime), hunt=result)


def _listen(
    request: HuntRequest, silence: float, progress: Progress, stderr: IO[str]
) -> tuple[HuntResult, dict[str, Any]]:
    known, allowed = HuntResult.blank(request), max(silence, _START_UP_SECONDS)
    job = request.job
    child = process.spawn(_WORKER, request.model_dump(mode="json"), job.device, stderr)
    events: process.Events = queue.Queue()
    reader = threading.Thread(target=process.read, args=(child, events), daemon=True)
    reader.start()
    heard = time.monotonic()
    try:
        while True:
            try:
                event = events.get(timeout=_POLL_SECONDS)
            except queue.Empty:
                if time.monotonic() - heard > allowed:
                    message = f"no answer within {allowed:g} s. Raise --timeout if it may"
                    return known.ended(HuntStatus.TIMED_OUT, message), {}
                if not process.has_ended(child):
                    continue
                # Something the kernel started may hold the pipe open for ever.
                reader.join(_POLL_SECONDS)
                event = None if events.empty() else events.get()
            heard = time.monotonic()
            if event is None:
                return known.ended(HuntStatus.CRASHED, process.death(child, stderr)), {}
            if event["event"] == "error":
                raise WorkerError(event["message"], event["exit_status"])
            known, allowed = HuntResult.model_validate_json(event["result"]), silence
            if event["event"] == "done":
                return known, event["runtime"]
            progress(known)
    except KeyboardInterrupt:
        message = "by Ctrl-C; what was found until then"
        return known.ended(HuntStatus.INTERRUPTED, message), {}
    finally:
        process.kill(child)
