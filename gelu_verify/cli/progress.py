"""A progress bar on stderr that appears only where a run takes longer than a second."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

from gelu_verify.job import Job
from gelu_verify.kernels.isolation import OnCheck

_STEPS_A_JOB = 8  # loading and seven checks
_PATIENCE_SECONDS = 1.0


@contextmanager
def bar(jobs: list[Job]) -> Iterator[OnCheck]:
    """Yield the callback that a run calls before every check."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    progress = Progress(
        TextColumn("{task.description:<50.50}", markup=False),
        BarColumn(bar_width=24),
        TextColumn("{task.percentage:>3.0f} %"),
        TimeElapsedColumn(),
        console=Console(stderr=True),
        transient=True,
    )
    task = progress.add_task("starting", total=len(jobs) * _STEPS_A_JOB)
    started = time.monotonic()
    seen: dict[int, int] = {}
    shown = False

    def on_check(index: int, check: str) -> None:
        nonlocal shown
        job = jobs[index]
        seen[index] = seen.get(index, -1) + 1
        done = index * _STEPS_A_JOB + min(seen[index], _STEPS_A_JOB)
        text = f"{job.spec.name} {job.operator} {job.format}: {check.replace('_', ' ')}"
        progress.update(task, description=text, completed=done)
        waited = time.monotonic() - started > _PATIENCE_SECONDS
        if waited and not shown and progress.console.is_terminal:
            progress.start()
            shown = True

    try:
        yield on_check
    finally:
        if shown:
            progress.stop()
