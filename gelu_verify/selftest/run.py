"""Run the catalogue: every kernel through the checks of any kernel, and through the usual tests."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from gelu_verify import formats, operators, provenance
from gelu_verify.job import Job, blank
from gelu_verify.kernels import isolation
from gelu_verify.kernels.listener import Limits
from gelu_verify.records import KernelResult, SelftestResults, UsualVerdict
from gelu_verify.selftest import usual_isolated, verdict
from gelu_verify.selftest.entry import Defect, Entry, Sound

#: Called with how many kernels are done, of how many.
OnDone = Callable[[int, int], None]
#: What is run alike in a format: operator, how it was reached, format.
_Way = tuple[str, str | None, str]

#: Where a kernel may end, hang or fill its process. torch and the checks hold less than 1 GiB.
_HARMFUL = Limits(seconds=10.0, memory=2 << 30)
_SECONDS = 60.0
#: What the other seeds of a sound kernel leave out, two thirds of a run of attention and of
#: convolution. Sizes decide where an index goes, and no seed changes them; new values are judged by
#: the same bound in the other checks.
_SAME_WITH_EVERY_SEED = ("large",)


@dataclass(frozen=True)
class Profile:
    """How deep.

    seeds: of sound kernels whose sweep is drawn. formats: how many of an entry's; None for all.
    stated: whether a defect runs only the checks that must reject it.
    """

    name: str
    seeds: int
    formats: int | None
    stated: bool = False

    def jobs(self, entry: Entry, device: str, seed: int = 0) -> list[Job]:
        """Return the jobs of an entry."""
        names = tuple(entry.rejected_by) if self.stated and isinstance(entry, Defect) else ()
        return [
            job.model_copy(update={"checks": names})
            for job in entry.jobs(device, seed, self.formats)
        ]


FULL = Profile("full", seeds=20, formats=None)
QUICK = Profile("quick", seeds=1, formats=1, stated=True)


@dataclass(frozen=True)
class _Batch:
    """What one worker runs: entries, and jobs of sound kernels with other seeds."""

    entries: list[Entry]
    again: list[Job]


@dataclass
class _Found:
    """What the processes of one batch gave."""

    results: list[KernelResult] = field(default_factory=list)
    usual: dict[tuple[str, _Way], tuple[UsualVerdict, ...]] = field(default_factory=dict)
    runtime: dict[str, Any] = field(default_factory=dict)


def run(
    entries: Iterable[Entry],
    profile: Profile,
    device: str,
    on_done: OnDone,
    workers: int | None = None,
) -> SelftestResults:
    """Run entries in child processes, on every core, and return all verdicts."""
    started = time.monotonic()
    entries = tuple(entries)
    # Two processes of two threads each on two cores only wait for one another.
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    count = workers or (1 if device.startswith("cuda") else len(os.sched_getaffinity(0)))
    done = 0
    found = _Found()
    with ThreadPoolExecutor(count) as pool:
        batches = _batches(entries, _again(entries, profile, device), count)
        for batch, part in zip(
            batches, pool.map(partial(_batch, profile=profile, device=device), batches), strict=True
        ):
            found.results += part.results
            found.usual |= part.usual
            found.runtime |= part.runtime
            done += len(batch.entries)
            on_done(done, len(entries))
    return SelftestResults(
        environment=provenance.environment(found.runtime),
        profile=profile.name,
        device=device,
        seconds=time.monotonic() - started,
        defects=tuple(
            verdict.of_defect(entry, results[0], usual)
            for entry in entries
            if isinstance(entry, Defect)
            for results, usual in _by_way(entry, found, profile, device)
        ),
        sounds=tuple(
            verdict.of_sound(entry, results, usual)
            for entry in entries
            if isinstance(entry, Sound)
            for results, usual in _by_way(entry, found, profile, device)
        ),
    )


def _again(entries: tuple[Entry, ...], profile: Profile, device: str) -> list[Job]:
    """Return the jobs of the sound kernels with other seeds than the first."""
    return [
        job.model_copy(update={"without": _SAME_WITH_EVERY_SEED})
        for entry in entries
        if isinstance(entry, Sound)
        for seed in range(1, profile.seeds)
        for job in profile.jobs(entry, device, seed)
        if _is_drawn(job)
    ]


def _batches(entries: tuple[Entry, ...], again: list[Job], count: int) -> list[_Batch]:
    """Return a batch a worker, of much the same work, and one of all harmful entries.

    Few, because starting a process and importing torch takes longer than most kernels. The seeds of
    one kernel are shared out, as they cost alike and kernels do not.
    """
    harmful = [entry for entry in entries if entry.harmful]
    rest = [entry for entry in entries if not entry.harmful]
    found = [_Batch(harmful, [])]
    found += [_Batch(rest[start::count], again[start::count]) for start in range(count)]
    return [batch for batch in found if batch.entries or batch.again]


def _batch(batch: _Batch, profile: Profile, device: str) -> _Found:
    """Run a batch in a child process (and in another the usual tests)."""
    harmful = any(entry.harmful for entry in batch.entries)
    limits = _HARMFUL if harmful else Limits.default(_SECONDS)
    first = [job for entry in batch.entries for job in profile.jobs(entry, device)]
    outcome = isolation.run([*first, *batch.again], limits, lambda index, check: None)
    usual = usual_isolated.run(first, limits)
    return _Found(
        outcome.results,
        {(job.spec.name, _way(job)): rows for job, rows in zip(first, usual, strict=True)},
        outcome.runtime,
    )


def _is_drawn(job: Job) -> bool:
    """Tell whether another seed gives other inputs: not where all of a format are run."""
    return len(operators.arguments(job.operator)) > 1 or formats.get(job.format).bits > 16


def _way(ran: Job | KernelResult) -> _Way:
    return ran.operator, ran.via, ran.format


def _by_way(
    entry: Entry, found: _Found, profile: Profile, device: str
) -> Iterable[tuple[list[KernelResult], tuple[UsualVerdict, ...]]]:
    """Yield the results of an entry, those of all seeds together, with the usual verdicts.

    A gradient that the entry claims and its kernel does not have counts as one that crashed.
    """
    for job in profile.jobs(entry, device):
        results = [r for r in found.results if r.name == entry.name and _way(r) == _way(job)]
        yield results or [blank(job)], found.usual[entry.name, _way(job)]
