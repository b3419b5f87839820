"""The child process of the usual tests: jobs in on stdin, verdicts out as JSON lines."""

from __future__ import annotations

from gelu_verify.job import Job
from gelu_verify.kernels.telling import begin, tell, telling_errors


def main() -> None:
    """Read jobs from stdin and tell the verdicts on one after another."""
    request, events = begin()
    from gelu_verify import operators
    from gelu_verify.kernels import loading
    from gelu_verify.selftest import usual

    tell(events, "start")
    with telling_errors(events):
        for job in map(Job.model_validate, request):
            arguments = operators.arguments("gelu" if job.via else job.operator)
            kernel = loading.load(job.spec, arguments)
            rows = [verdict.model_dump(mode="json") for verdict in usual.verdicts(job, kernel)]
            tell(events, "done", verdicts=rows)
