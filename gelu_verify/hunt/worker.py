"""The child process of a hunt: a request in on stdin, events out as JSON lines."""

from __future__ import annotations

import json
import os
import sys
import tempfile
from typing import IO

from gelu_verify.errors import GeluVerifyError
from gelu_verify.hunt.records import HuntRequest, HuntResult
from gelu_verify.kernels.orphans import leave_with_parent


def serve(request: HuntRequest, events: IO[str]) -> None:
    """Hunt, and write an event now and then and at the end."""
    from gelu_verify import provenance
    from gelu_verify.hunt.run import hunt

    def send(kind: str, **content: object) -> None:
        events.write(json.dumps({"event": kind, **content}) + "\n")
        events.flush()

    def progress(result: HuntResult) -> None:
        send("progress", result=result.model_dump_json())

    try:
        result = hunt(request, progress)
    except GeluVerifyError as error:
        send("error", message=str(error), exit_status=error.exit_status)
        return
    runtime = provenance.runtime(request.job.device)
    send("done", result=result.model_dump_json(), runtime=runtime)


def main() -> None:
    """Read a request from stdin, give the kernel a stdout of no consequence, serve."""
    leave_with_parent()
    request = HuntRequest.model_validate(json.load(sys.stdin))
    events = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    with tempfile.TemporaryDirectory() as folder:
        from hypothesis.configuration import set_hypothesis_home_dir

        set_hypothesis_home_dir(folder)  # it keeps notes, and not in the user's folder
        serve(request, events)
