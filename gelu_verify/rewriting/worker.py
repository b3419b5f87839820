"""The child process that verifies a model: a request in on stdin, one event out as JSON."""

from __future__ import annotations

import json
import os
import sys

from gelu_verify.errors import GeluVerifyError
from gelu_verify.kernels.orphans import leave_with_parent
from gelu_verify.rewriting.run import Request, run_here


def main() -> None:
    """Read a request from stdin, give the model a stdout of no consequence, verify, answer."""
    leave_with_parent()
    request = Request.model_validate(json.load(sys.stdin))
    events = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    try:
        event: dict[str, object] = {"event": "done", "results": run_here(request).model_dump_json()}
    except GeluVerifyError as error:
        event = {"event": "error", "message": str(error), "exit_status": error.exit_status}
    events.write(json.dumps(event) + "\n")
    events.flush()
