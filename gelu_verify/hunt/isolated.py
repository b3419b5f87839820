"""Run a hunt in a child process, so that a kernel can crash or hang and its finds are not lost."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from typing import IO, Any

from gelu_verify import provenance
from gelu_verify.hunt.records import HuntReport, HuntRequest, HuntResult, HuntStatus
from gelu_verify.kernels.listener import Ended, Limits, Listener

#: Called with the result as far as it is known.
Progress = Callable[[HuntResult], None]

_WORKER = "gelu_verify.hunt.worker"


def run(request: HuntRequest, limits: Limits, progress: Progress) -> HuntReport:
    """Hunt in a child; one that dies or goes beyond a limit ends the hunt.

    So does Ctrl-C: the result is what was known by then. Raises ``WorkerError`` for what is wrong
    with the request, with its exit status.
    """
    with tempfile.TemporaryFile("w+", errors="replace") as stderr:
        result, runtime = _listen(request, limits, progress, stderr)
    return HuntReport(environment=provenance.environment(runtime), hunt=result)


def _listen(
    request: HuntRequest, limits: Limits, progress: Progress, stderr: IO[str]
) -> tuple[HuntResult, dict[str, Any]]:
    """Return the result, and what the child knows of its environment if it came to an end."""
    known, asked = HuntResult.blank(request), request.model_dump(mode="json")
    with Listener(_WORKER, asked, request.job.device, limits, stderr) as child:
        try:
            while True:
                event = child.next()
                known = HuntResult.model_validate_json(event["result"])
                if event["event"] == "done":
                    return known, event["runtime"]
                progress(known)
        except Ended as ended:
            return known.ended(HuntStatus(ended.status.value), ended.reason), {}
        except KeyboardInterrupt:
            message = "by Ctrl-C; what was found until then"
            return known.ended(HuntStatus.INTERRUPTED, message), {}
