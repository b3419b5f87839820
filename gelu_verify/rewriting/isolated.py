"""Verify each model in a child process: fused operators may crash or hang."""

from __future__ import annotations

import tempfile

from gelu_verify import provenance
from gelu_verify.kernels.listener import Ended, Limits, Listener
from gelu_verify.records import Finding, FindingStatus, KernelResult, Results
from gelu_verify.rewriting.run import Request

_WORKER = "gelu_verify.rewriting.worker"


def run(requests: list[Request], limits: Limits) -> Results:
    """Verify models one after another; one that goes beyond a limit is ended.

    limits.seconds: what the model and its operators may take in a stage (making and rewriting it,
    the original, the rewritten model, its sites). Float64 and bounds do not count. Raises
    ``WorkerError`` for what is wrong with a request, with its exit status.
    """
    done = [_one(request, limits) for request in requests]
    kernels = tuple(result for results in done for result in results.kernels)
    return Results(environment=done[0].environment, kernels=kernels)


def _one(request: Request, limits: Limits) -> Results:
    asked = request.model_dump(mode="json")
    with (
        tempfile.TemporaryFile("w+", errors="replace") as stderr,
        Listener(_WORKER, asked, request.device, limits, stderr) as child,
    ):
        try:
            while (event := child.next())["event"] != "done":
                pass
        except Ended as ended:
            return _ended(request, ended)
    return Results.model_validate_json(event["results"])


def _ended(request: Request, ended: Ended) -> Results:
    """Return the results of a model whose child was ended, or ended itself."""
    finding = Finding(
        check="call", status=FindingStatus.FAILED, message=ended.reason, reproduce=request.command
    )
    result = KernelResult(
        name=request.target,
        target=request.target,
        operator="rewriting",
        formula="-",
        format=request.format or "-",
        device=request.device,
        status=ended.status,
        contract=request.contract,
        findings=(finding,),
    )
    return Results(environment=provenance.environment({}), kernels=(result,))
