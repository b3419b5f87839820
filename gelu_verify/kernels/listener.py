"""The parent's side of a conversation: what a child tells, until it is done or goes too far."""

from __future__ import annotations

import queue
import threading
import time
from dataclasses import dataclass
from typing import IO, Any

import psutil

from gelu_verify.errors import GeluVerifyError, UsageError
from gelu_verify.kernels import child as process
from gelu_verify.records import Status

_POLL_SECONDS = 0.1
#: Starting Python and importing torch may take this long, whatever the limit on the kernel.
_START_UP_SECONDS = 120.0
_GIB = 1 << 30


@dataclass(frozen=True)
class Limits:
    """seconds: time the kernel may take between two events, its import included; the harness's own
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


class Interrupted(GeluVerifyError):
    """The run was stopped while a child was at work."""

    exit_status = 130


class Ended(Exception):
    """The child died, was silent for too long, or grew too large.

    what: that in a line. reason: the same with what a user may do, where an option helps.
    """

    def __init__(self, status: Status, what: str, next_step: str = "") -> None:
        self.status, self.what = status, what
        self.reason = f"{what}. {next_step}" if next_step else what
        super().__init__(self.reason)


class Listener:
    """A child at work. Leaving the context ends it and everything that it started."""

    def __init__(
        self, worker: str, request: Any, device: str, limits: Limits, stderr: IO[str]
    ) -> None:
        self.limits, self.stderr = limits, stderr
        self.child = process.spawn(worker, request, device, stderr, limits.threads)
        self.events: process.Events = queue.Queue()
        self.reader = threading.Thread(
            target=process.read, args=(self.child, self.events), daemon=True
        )
        self.reader.start()
        self.starting = True
        self.spent = 0.0
        self.heard = time.monotonic()

    def __enter__(self) -> Listener:
        return self

    def __exit__(self, *_: object) -> None:
        process.kill(self.child)

    def next(self, stop: threading.Event | None = None) -> dict[str, Any]:
        """Return the next event of the child; the first says that it has imported what it needs.

        Raises :class:`Ended` where none will come, :class:`WorkerError` for an error it tells,
        :class:`Interrupted` when ``stop`` is set.
        """
        while True:
            if stop is not None and stop.is_set():
                raise Interrupted("interrupted")
            try:
                event = self.events.get(timeout=_POLL_SECONDS)
            except queue.Empty:
                self._require_within(self.spent + time.monotonic() - self.heard)
                if not process.has_ended(self.child):
                    continue
                # Something the kernel started may hold the pipe open for ever.
                self.reader.join(_POLL_SECONDS)
                event = None if self.events.empty() else self.events.get()
            if event is None:
                raise Ended(Status.CRASHED, process.death(self.child, self.stderr))
            self._count(event)
            if event["event"] == "error":
                raise WorkerError(event["message"], event["exit_status"])
            if event["event"] not in ("busy", "own"):
                return event

    def _count(self, event: dict[str, Any]) -> None:
        """Charge the time before an event to the kernel, unless the event says it was not."""
        now = time.monotonic()
        if event["event"] == "busy":
            self.spent += now - self.heard
        elif event["event"] != "own":
            self.spent, self.starting = 0.0, False
        self.heard = now

    def _require_within(self, spent: float) -> None:
        """Raise where the child has taken too much time or memory."""
        allowed = max(self.limits.seconds, _START_UP_SECONDS if self.starting else 0.0)
        if spent > allowed:
            what = f"no answer within {allowed:g} s"
            raise Ended(Status.TIMED_OUT, what, "Raise --timeout if it may")
        try:
            resident = psutil.Process(self.child.pid).memory_info().rss
        except psutil.Error:
            return  # it has just ended: the reader will say so
        if resident > self.limits.memory:
            raise Ended(
                Status.CRASHED,
                f"memory: the kernel's process grew to {resident / _GIB:.1f} GiB, "
                f"limit {self.limits.memory / _GIB:.1f} GiB",
            )
