"""Run jobs in a child process, so that a kernel can crash, hang or eat memory and nothing is lost.

The child tells what it knows before every check. When it dies, is silent for longer than the time
limit, or grows beyond the memory limit, the last it told becomes the result, with a typed verdict.
"""

from __future__ import annotations

import tempfile
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import IO, Any

from gelu_verify.job import Job, blank, reproduce
from gelu_verify.kernels.listener import Ended, Limits, Listener
from gelu_verify.records import Finding, FindingStatus, KernelResult

#: Called with the index of the job and the check that starts.
OnCheck = Callable[[int, str], None]

_WORKER = "gelu_verify.kernels.worker"


@dataclass
class Outcome:
    """Results in the order of the jobs, and what the child knows of its environment."""

    results: list[KernelResult] = field(default_factory=list)
    runtime: dict[str, Any] = field(default_factory=dict)


def run(
    jobs: list[Job], limits: Limits, on_check: OnCheck, stop: threading.Event | None = None
) -> Outcome:
    """Run jobs in order; those that do not apply to the kernel have no result.

    A job that kills its child costs only itself: the next ones run in a new child.
    stop: ends the child and raises :class:`Interrupted` when another thread sets it.
    """
    outcome = Outcome()
    start = 0
    while start < len(jobs):
        with tempfile.TemporaryFile("w+", errors="replace") as stderr:
            start += _Batch(jobs[start:], start, on_check).run(outcome, limits, stderr, stop)
    return outcome


class _Batch:
    """The jobs of one child and what is known of the job it is at."""

    def __init__(self, jobs: list[Job], first: int, on_check: OnCheck) -> None:
        self.jobs, self.first, self.on_check = jobs, first, on_check
        self.finished = 0
        self.partial, self.check = blank(jobs[0]), "start-up"

    def run(
        self, outcome: Outcome, limits: Limits, stderr: IO[str], stop: threading.Event | None
    ) -> int:
        """Add the child's results to ``outcome`` and return how many jobs it dealt with."""
        request = [job.model_dump(mode="json") for job in self.jobs]
        with Listener(_WORKER, request, self.jobs[0].device, limits, stderr) as child:
            try:
                while self.finished < len(self.jobs):
                    self._handle(child.next(stop), outcome)
            except Ended as ended:
                return self._stopped(outcome, ended)
        return self.finished

    def _handle(self, event: dict[str, Any], outcome: Outcome) -> None:
        if event["event"] == "check":
            self.partial = KernelResult.model_validate_json(event["result"])
            self.check = event["check"]
            self.on_check(self.first + event["job"], self.check)
            return
        if event["result"] is not None:
            outcome.results.append(KernelResult.model_validate_json(event["result"]))
        outcome.runtime |= event["runtime"]
        self.finished += 1
        if self.finished < len(self.jobs):
            self.partial, self.check = blank(self.jobs[self.finished]), "loading"

    def _stopped(self, outcome: Outcome, ended: Ended) -> int:
        finding = Finding(
            check=self.check,
            status=FindingStatus.FAILED,
            message=ended.reason,
            reproduce=reproduce(self.jobs[self.finished]),
        )
        findings = (*self.partial.findings, finding)
        outcome.results.append(
            self.partial.model_copy(update={"status": ended.status, "findings": findings})
        )
        return self.finished + 1
