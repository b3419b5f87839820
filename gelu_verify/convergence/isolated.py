"""Train in a child process, so that a kernel that crashes or hangs ends in a verdict and a line."""

from __future__ import annotations

import tempfile
from dataclasses import replace
from pathlib import Path

from gelu_verify.convergence.experiment import ConvergenceInterrupted, Experiment, OnRun
from gelu_verify.convergence.records import Convergence, Verdict
from gelu_verify.kernels.listener import Ended, Limits, Listener

_WORKER = "gelu_verify.convergence.worker"
#: The models of the tasks are small: a second thread gains nothing, and waits for its turn beside
#: other work, where a run took four times as long with it. OMP_NUM_THREADS says otherwise.
_THREADS = 1


def run(experiment: Experiment, limits: Limits, on_run: OnRun) -> Convergence:
    """Return the record of an experiment; finished runs stay in the ledger, however it ends.

    limits.seconds: what the kernel's arm may take between two points of its curve.
    Raises ``WorkerError`` for what is wrong with the request, with its exit status.
    """
    limits = replace(limits, threads=limits.threads or _THREADS)
    known, where = experiment.blank(), "start-up"
    done, total, ledger = 0.0, 0, None
    request = experiment.model_dump(mode="json")
    with (
        tempfile.TemporaryFile("w+", errors="replace") as stderr,
        Listener(_WORKER, request, experiment.job.device, limits, stderr) as child,
    ):
        try:
            while True:
                event = child.next()
                if event["event"] == "done":
                    return Convergence.model_validate_json(event["record"])
                if event["event"] == "start":
                    known = Convergence.model_validate_json(event["record"])
                    ledger = Path(event["ledger"])
                    continue
                done, total, where = event["done"], event["total"], event["what"]
                on_run(done, total, where)
        except Ended as ended:
            reason = f"{where}: {ended.reason}"
            return known.model_copy(
                update={"verdict": Verdict(ended.status.value), "reasons": (reason,)}
            )
        except KeyboardInterrupt:
            if ledger is None:
                raise
            raise ConvergenceInterrupted(int(done), total, ledger) from None
