"""A progress bar on stderr that appears only where a run takes longer than a second."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from gelu_verify.campaign.pair_shard import is_of_pairs
from gelu_verify.job import Job

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

_STEPS_A_JOB = 10  # loading and nine checks
_PATIENCE_SECONDS = 1.0


class Bar:
    """What a run tells how far it is: called before every check, and after every shard."""

    def __init__(self, jobs: list[Job], progress: Progress) -> None:
        self.jobs, self.progress = jobs, progress
        self.task: TaskID = progress.add_task("starting", total=len(jobs) * _STEPS_A_JOB, detail="")
        self.started = time.monotonic()
        self.seen: dict[int, int] = {}
        self.campaign: tuple[int, int, float] | None = None
        self.shown = False

    def __call__(self, index: int, check: str) -> None:
        """Tell that a check of a job starts."""
        self.campaign = None
        self.seen[index] = self.seen.get(index, -1) + 1
        # Several kernels may be at work: those that came before count as whole.
        done = (len(self.seen) - 1) * _STEPS_A_JOB + min(self.seen[index], _STEPS_A_JOB)
        text = f"{self._name(index)}: {check.replace('_', ' ')}"
        total = len(self.jobs) * _STEPS_A_JOB
        self._update(description=text, completed=done, total=total, detail="")

    def on_patterns(self, index: int, done: int, total: int) -> None:
        """Tell how many patterns of a campaign are done; the bar is the campaign's meanwhile."""
        now = time.monotonic()
        if self.campaign is None or self.campaign[0] != index:
            self.campaign = (index, done, now)  # what a ledger held took no time
        _, at_start, since = self.campaign
        unit = "pairs" if is_of_pairs(self.jobs[index]) else "inputs"
        detail = f"{done:,} of {total:,} {unit}"
        if done > at_start:
            left = (now - since) / (done - at_start) * (total - done)
            detail += f", {_duration(left)} left"
        text = f"{self._name(index)}: all {unit}"
        self._update(description=text, completed=done, total=total, detail=detail)

    def _name(self, index: int) -> str:
        job = self.jobs[index]
        return f"{job.spec.name} {job.operator} {job.format}"

    def _update(self, description: str, completed: int, total: int, detail: str) -> None:
        self.progress.update(
            self.task, description=description, completed=completed, total=total, detail=detail
        )
        waited = time.monotonic() - self.started > _PATIENCE_SECONDS
        if waited and not self.shown and self.progress.console.is_terminal:
            self.progress.start()
            self.shown = True


@contextmanager
def bar(jobs: list[Job]) -> Iterator[Bar]:
    """Yield what a run calls to tell how far it is."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    progress = Progress(
        TextColumn("{task.description:<50.50}", markup=False),
        BarColumn(bar_width=24),
        TextColumn("{task.percentage:>3.0f} %"),
        TimeElapsedColumn(),
        TextColumn("{task.fields[detail]}", markup=False),
        console=Console(stderr=True),
        transient=True,
    )
    shown = Bar(jobs, progress)
    try:
        yield shown
    finally:
        if shown.shown:
            progress.stop()


def _duration(seconds: float) -> str:
    """Return a time as h:mm:ss."""
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes // 60}:{minutes % 60:02d}:{rest:02d}"
