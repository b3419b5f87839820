"""Run jobs in a child process, so that a kernel can crash, hang or eat memory and nothing is lost.

The child tells what it knows before every check. When it dies, is silent for longer than the time
limit, or grows beyond the memory limit, the last it told becomes the result, with a typed verdict.
"""

from __future__ import annotations

import queue
import tempfile
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import IO, Any

import psutil

from gelu_verify.errors import GeluVerifyError, UsageError
from gelu_verify.job import Job, blank, reproduce
from gelu_verify.kernels import child as process
from gelu_verify.records import Finding, FindingStatus, KernelResult, Status

#: Called with the index of the job and the check that starts.
OnCheck = Callable[[int, str], None]

_POLL_SECONDS = 0.1
#: Starting Python and importing torch may take this long, whatever the limit on a check.
_START_UP_SECONDS = 120.0
_GIB = 1 << 30
_WORKER = "gelu_verify.kernels.worker"


@dataclass(frozen=True)
class Limits:
    """seconds: time the kernel may take in a single check, its import included; the harness's own
    work does not count. memory: bytes the child may hold resident. threads: cores its libraries
    may use; None for all.
    """

    seconds: float = 60.0
    memory: int = 16 * _GIB
    threads: int | None = None

    @classmethod
    def default(cls, seconds: float = 60.0) -> Limits:
        """Return limits that leave this machine a quarter of what is free now, 16 GiB at most."""
        if not seconds > 0:
            raise UsageError(f"timeout: got {seconds}, expected seconds above 0.")
        return cls(seconds, min(16 * _GIB, int(psutil.virtual_memory().available * 0.75)))


class WorkerError(GeluVerifyError):
    """A usage error that the child found, with its exit status."""

    def __init__(self, message: str, exit_status: int) -> None:
        super().__init__(message)
        self.exit_status = exit_status


@dataclass
class Outcome:
    """Results in the order of the jobs, and what the child knows of its environment."""

    results: list[KernelResult] = field(default_factory=list)
    runtime: dict[str, Any] = field(default_factory=dict)


class Interrupted(GeluVerifyError):
    """The run was stopped while a child was at work."""

    exit_status = 130


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
            listener = _Listener(jobs[start:], start, limits, on_check, stderr)
            start += listener.listen(outcome, stop or threading.Event())
    return outcome


class _Listener:
    """One child and what is known of the job it is at."""

    def __init__(
        self, jobs: list[Job], first: int, limits: Limits, on_check: OnCheck, stderr: IO[str]
    ) -> None:
        self.jobs, self.first, self.limits, self.on_check = jobs, first, limits, on_check
        self.stderr = stderr
        self.finished = 0
        self.partial, self.check = blank(jobs[0]), "start-up"
        request = [job.model_dump(mode="json") for job in jobs]
        self.child = process.spawn(_WORKER, request, jobs[0].device, stderr, limits.threads)
        self.events: process.Events = queue.Queue()
        self.reader = threading.Thread(
            target=process.read, args=(self.child, self.events), daemon=True
        )
        self.reader.start()
        self.spent = 0.0

    def listen(self, outcome: Outcome, stop: threading.Event) -> int:
        """Add the child's results to ``outcome`` and return how many jobs it dealt with."""
        heard = time.monotonic()
        try:
            while self.finished < len(self.jobs):
                if stop.is_set():
                    raise Interrupted("interrupted")
                try:
                    event = self.events.get(timeout=_POLL_SECONDS)
                except queue.Empty:
                    reason = self._over_limit(self.spent + time.monotonic() - heard)
                    if reason is not None:
                        return self._stopped(outcome, *reason)
                    if not process.has_ended(self.child):
                        continue
                    # Something the kernel started may hold the pipe open for ever.
                    self.reader.join(_POLL_SECONDS)
                    event = None if self.events.empty() else self.events.get()
                self._count(event, time.monotonic() - heard)
                heard = time.monotonic()
                if event is None:
                    death = process.death(self.child, self.stderr)
                    return self._stopped(outcome, Status.CRASHED, death)
                self._handle(event, outcome)
        finally:
            process.kill(self.child)
        return self.finished

    def _count(self, event: dict[str, Any] | None, seconds: float) -> None:
        """Charge the time before an event to the kernel, unless the event says it was not."""
        if event is None or event["event"] in ("busy", "own"):
            self.spent += seconds if event is None or event["event"] == "busy" else 0.0
        else:
            self.spent = 0.0

    def _handle(self, event: dict[str, Any], outcome: Outcome) -> None:
        if event["event"] in ("busy", "own"):
            return
        if event["event"] == "error":
            raise WorkerError(event["message"], event["exit_status"])
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

    def _over_limit(self, spent: float) -> tuple[Status, str] | None:
        allowed = self.limits.seconds
        if self.check == "start-up":
            allowed = max(allowed, _START_UP_SECONDS)
        if spent > allowed:
            return Status.TIMED_OUT, f"no answer within {allowed:g} s. Raise --timeout if it may"
        try:
            resident = psutil.Process(self.child.pid).memory_info().rss
        except psutil.Error:
            return None  # it has just ended: the reader will say so
        if resident > self.limits.memory:
            return Status.CRASHED, (
                f"memory: the kernel's process grew to {resident / _GIB:.1f} GiB, "
                f"limit {self.limits.memory / _GIB:.1f} GiB"
            )
        return None

    def _stopped(self, outcome: Outcome, status: Status, reason: str) -> int:
        finding = Finding(
            check=self.check,
            status=FindingStatus.FAILED,
            message=reason,
            reproduce=reproduce(self.jobs[self.finished]),
        )
        findings = (*self.partial.findings, finding)
        outcome.results.append(
            self.partial.model_copy(update={"status": status, "findings": findings})
        )
        return self.finished + 1
