"""Run a list of jobs and gather their results: what the command line, Python and pytest share."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial
from itertools import groupby
from typing import Any

from gelu_verify import provenance
from gelu_verify.job import Job
from gelu_verify.kernels import isolation
from gelu_verify.kernels.isolation import Limits, OnCheck
from gelu_verify.records import KernelResult, Results


def run(jobs: list[Job], limits: Limits, on_check: OnCheck) -> Results:
    """Run jobs in child processes, one a kernel, and return all results."""
    results: list[KernelResult] = []
    runtime: dict[str, Any] = {}
    numbered = list(enumerate(jobs))
    for _, group in groupby(numbered, key=lambda item: (item[1].spec.name, item[1].device)):
        members = list(group)
        first = members[0][0]
        outcome = isolation.run(
            [job for _, job in members],
            limits,
            partial(_shifted, on_check, first),
        )
        results += outcome.results
        runtime |= {key: value for key, value in outcome.runtime.items() if value is not None}
    return Results(environment=provenance.environment(runtime), kernels=tuple(results))


def _shifted(on_check: OnCheck, first: int, index: int, check: str) -> None:
    on_check(first + index, check)


def run_here(
    jobs: list[Job], on_check: OnCheck, function: Callable[..., Any] | None = None
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

        done = pipeline.check(job, progress, function)
        if done is not None:
            results.append(done)
    runtime = provenance.runtime(jobs[0].device if jobs else "cpu")
    return Results(environment=provenance.environment(runtime), kernels=tuple(results))
