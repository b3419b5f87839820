"""The child process of a hunt: a request in on stdin, events out as JSON lines."""

from __future__ import annotations

from gelu_verify.hunt.records import HuntRequest, HuntResult
from gelu_verify.kernels.telling import begin, tell, telling_errors


def main() -> None:
    """Read a request from stdin, hunt, tell what is known now and then and at the end."""
    request, events = begin()
    from gelu_verify import provenance
    from gelu_verify.hunt.run import hunt

    def progress(result: HuntResult) -> None:
        tell(events, "progress", result=result.model_dump_json())

    with telling_errors(events):
        asked = HuntRequest.model_validate(request)
        result = hunt(asked, progress)
        runtime = provenance.runtime(asked.job.device)
        tell(events, "done", result=result.model_dump_json(), runtime=runtime)
