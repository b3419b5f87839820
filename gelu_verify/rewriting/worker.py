"""The child process that verifies a model: a request in on stdin, events out as JSON lines."""

from __future__ import annotations

from gelu_verify.kernels.telling import begin, tell, telling_errors
from gelu_verify.rewriting.run import Request, run_here


def main() -> None:
    """Read a request from stdin, verify, tell when each stage starts and the results."""
    request, events = begin()
    with telling_errors(events):
        results = run_here(Request.model_validate(request), lambda: tell(events, "stage"))
        tell(events, "done", results=results.model_dump_json())
