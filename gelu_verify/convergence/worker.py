"""The child process that trains: an experiment in on stdin, events out as JSON lines."""

from __future__ import annotations

from gelu_verify.convergence.experiment import Experiment
from gelu_verify.convergence.records import Convergence
from gelu_verify.kernels.telling import begin, tell, telling_errors


def main() -> None:
    """Read an experiment from stdin, train, tell how far it is and the record."""
    request, events = begin()
    from gelu_verify.convergence import run as experiments

    def on_start(known: Convergence, ledger: str) -> None:
        tell(events, "start", record=known.model_dump_json(), ledger=ledger)

    def on_run(done: float, total: int, what: str) -> None:
        tell(events, "run", done=done, total=total, what=what)

    with telling_errors(events):
        found = experiments.run(Experiment.model_validate(request), on_run, on_start=on_start)
        tell(events, "done", record=found.model_dump_json())
