"""The child process of the usual tests: jobs in on stdin, verdicts out as JSON lines."""

from __future__ import annotations

import json
import os
import sys

from gelu_verify.errors import GeluVerifyError
from gelu_verify.job import Job
from gelu_verify.kernels.orphans import leave_with_parent


def main() -> None:
    """Read jobs from stdin, give the kernels a stdout of no consequence, answer one by one."""
    leave_with_parent()
    jobs = [Job.model_validate(item) for item in json.load(sys.stdin)]
    events = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    from gelu_verify import operators
    from gelu_verify.kernels import loading
    from gelu_verify.selftest import usual

    for job in jobs:
        try:
            arguments = operators.arguments("gelu" if job.via else job.operator)
            kernel = loading.load(job.spec, arguments)
            rows = [verdict.model_dump(mode="json") for verdict in usual.verdicts(job, kernel)]
            event: dict[str, object] = {"event": "done", "verdicts": rows}
        except GeluVerifyError as error:
            event = {"event": "error", "message": str(error), "exit_status": error.exit_status}
        events.write(json.dumps(event) + "\n")
        events.flush()
