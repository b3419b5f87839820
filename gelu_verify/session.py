"""Run a list of jobs and gather their results: what the command line, Python and pytest share."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from dataclasses import replace
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import Any, TypeVar

from gelu_verify import provenance
from gelu_verify.campaign import checked, executors, shard
from gelu_verify.campaign import run as campaigns
from gelu_verify.campaign.run import Plan
from gelu_verify.job import Job
from gelu_verify.kernels import isolation
from gelu_verify.kernels.isolation import OnCheck
from gelu_verify.kernels.listener import Limits
from gelu_verify.records import KernelResult, Results

#: Called with the index of the job, the patterns of its campaign that are done, and all of them.
OnPatterns = Callable[[int, int, int], None]

T = TypeVar("T")
_PLAN = Plan()
#: Bytes that a worker of a sweep may hold, however many there are; torch alone takes 0.4 GiB.
_LEAST_SHARE = 2 << 30


def _ignore(index: int, done: int, total: int) -> None:
    return None


def run(
    jobs: list[Job],
    limits: Limits,
    on_check: OnCheck,
    plan: Plan = _PLAN,
    on_patterns: OnPatterns = _ignore,
    processes: int = 1,
) -> Results:
    """Run jobs in child processes, one a kernel, and return all results.

    plan: how a campaign runs, for jobs that ask for every input of fp32.
    processes: kernels checked at a time, in order of their jobs; campaigns have processes of their
        own.
    Raises :class:`gelu_verify.ledger.LedgerRefused` before anything runs.
    """
    plans = {i: _own(job, plan, limits) for i, job in enumerate(jobs) if checked.is_swept(job)}
    for index, own in plans.items():
        campaigns.require_ledger(jobs[index], own)
    runtime: dict[str, Any] = {}
    stop = threading.Event()

    def in_child(members: list[Job], first: int) -> list[KernelResult]:
        outcome = isolation.run(members, limits, partial(_shifted, on_check, first), stop)
        runtime.update({k: v for k, v in outcome.runtime.items() if v is not None})
        return outcome.results

    def of_group(numbered: list[tuple[int, Job]]) -> list[KernelResult]:
        first, members = numbered[0][0], [job for _, job in numbered]
        if first not in plans:
            return in_child(members, first)

        def alone(job: Job) -> KernelResult | None:
            return next(iter(in_child([job], first)), None)

        campaign = partial(campaigns.run, members[0], plans[first], partial(on_patterns, first))
        done = checked.check(members[0], alone, campaign)
        return [done] if done else []

    groups = [list(group) for _, group in groupby(enumerate(jobs), key=_child)]
    parts = _mapped(of_group, groups, processes, stop)
    results = tuple(result for part in parts for result in part)
    return Results(environment=provenance.environment(runtime), kernels=results)


def at_a_time(jobs: list[Job], workers: int | None = None) -> int:
    """Return how many kernels run at a time: ``workers``, or one a core, one for a GPU.

    A campaign takes every core itself, and a kernel that is timed has the machine to itself.
    """
    if not jobs or any(checked.is_swept(job) or job.speed for job in jobs):
        return 1
    kernels = sum(1 for _ in groupby(enumerate(jobs), key=_child))
    return min(kernels, workers or min(executors.worker_count(job.device) for job in jobs))


def shared(limits: Limits, processes: int) -> Limits:
    """Return the limits of each of some processes at a time: its share of the memory and cores."""
    if processes == 1:
        return limits
    threads = max(1, len(os.sched_getaffinity(0)) // processes)
    return replace(limits, memory=limits.memory // processes, threads=threads)


def _mapped(
    run: Callable[[T], list[KernelResult]], groups: list[T], processes: int, stop: threading.Event
) -> list[list[KernelResult]]:
    """Return what ``run`` gives for each group, ``processes`` at a time; an error stops all."""
    if processes == 1:
        return [run(group) for group in groups]
    with ThreadPoolExecutor(processes) as pool:
        futures = [pool.submit(run, group) for group in groups]
        try:
            wait(futures, return_when=FIRST_EXCEPTION)
            return [future.result() for future in futures]
        except BaseException:
            stop.set()
            pool.shutdown(cancel_futures=True)
            raise


def _child(numbered: tuple[int, Job]) -> tuple[str, str, int | None]:
    """Return what tells apart the jobs of one child: a job for a campaign is alone in its own."""
    index, job = numbered
    return job.spec.name, job.device, index if checked.is_swept(job) else None


def _own(job: Job, plan: Plan, limits: Limits) -> Plan:
    """Return the plan of one job: its ledger, and each worker's share of the memory."""
    workers = plan.workers or executors.worker_count(job.device)
    share = min(limits.memory, max(limits.memory // workers, _LEAST_SHARE))
    return replace(plan, ledger=_ledger_of(job, plan), memory=share)


def _ledger_of(job: Job, plan: Plan) -> Path | None:
    """Return the file of a job: that of the backward of a kernel is beside the given one."""
    if plan.ledger is None or not job.via:
        return plan.ledger
    return plan.ledger.with_stem(f"{plan.ledger.stem}-{job.via}")


def _shifted(on_check: OnCheck, first: int, index: int, check: str) -> None:
    on_check(first + index, check)


def run_here(
    jobs: list[Job],
    on_check: OnCheck,
    function: Callable[..., Any] | None = None,
    plan: Plan = _PLAN,
    on_patterns: OnPatterns = _ignore,
) -> Results:
    """Run jobs in this process: for debugging, and for a kernel that is a Python object.

    Nothing is isolated: a kernel that kills its process kills this one.
    """
    if all(job.device == "cpu" for job in jobs):
        os.environ.setdefault("TRITON_INTERPRET", "1")
    from gelu_verify import pipeline

    results = []
    for index, job in enumerate(jobs):

        def progress(check: str, _: KernelResult, index: int = index) -> None:
            on_check(index, check)

        def run_checks(job: Job, progress: pipeline.Progress = progress) -> KernelResult | None:
            return pipeline.check(job, progress, function)

        def campaign(job: Job = job, index: int = index) -> str:
            told = partial(on_patterns, index)
            return campaigns.run_here(job, function or shard.load(job), plan, told)

        swept = checked.is_swept(job)
        done = checked.check(job, run_checks, campaign) if swept else run_checks(job)
        if done is not None:
            results.append(done)
    runtime = provenance.runtime(jobs[0].device if jobs else "cpu")
    return Results(environment=provenance.environment(runtime), kernels=tuple(results))
