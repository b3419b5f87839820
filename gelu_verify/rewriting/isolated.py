"""Verify each model in a child process: fused operators may crash or hang."""

from __future__ import annotations

import queue
import tempfile
import threading
from typing import IO

from gelu_verify import provenance
from gelu_verify.kernels import child as process
from gelu_verify.kernels.isolation import WorkerError
from gelu_verify.records import Finding, FindingStatus, KernelResult, Results, Status
from gelu_verify.rewriting.run import Request

_WORKER = "gelu_verify.rewriting.worker"
#: Starting Python, importing torch and evaluating a model in float64 are not the kernels' time.
_OWN_SECONDS = 240.0


def run(requests: list[Request], seconds: float) -> Results:
    """Verify models one after another; one without an answer after ``seconds`` is ended.

    Raises ``WorkerError`` for what is wrong with a request, with its exit status.
    """
    done = []
    for request in requests:
        with tempfile.TemporaryFile("w+", errors="replace") as stderr:
            done.append(_one(request, seconds + _OWN_SECONDS, stderr))
    kernels = tuple(result for results in done for result in results.kernels)
    return Results(environment=done[0].environment, kernels=kernels)


def _one(request: Request, allowed: float, stderr: IO[str]) -> Results:
    child = process.spawn(_WORKER, request.model_dump(mode="json"), request.device, stderr)
    events: process.Events = queue.Queue()
    threading.Thread(target=process.read, args=(child, events), daemon=True).start()
    try:
        event = events.get(timeout=allowed)
        if event is None:
            return _ended(request, Status.CRASHED, process.death(child, stderr))
    except queue.Empty:
        message = f"no answer within {allowed:g} s. Raise --timeout if it may"
        return _ended(request, Status.TIMED_OUT, message)
    finally:
        process.kill(child)
    if event["event"] == "error":
        raise WorkerError(event["message"], event["exit_status"])
    return Results.model_validate_json(event["results"])


def _ended(request: Request, status: Status, message: str) -> Results:
    finding = Finding(
        check="call", status=FindingStatus.FAILED, message=message, reproduce=request.command
    )
    result = KernelResult(
        name=request.target,
        target=request.target,
        operator="rewriting",
        formula="-",
        format=request.format or "-",
        device=request.device,
        status=status,
        contract=request.contract,
        findings=(finding,),
    )
    return Results(environment=provenance.environment({}), kernels=(result,))
