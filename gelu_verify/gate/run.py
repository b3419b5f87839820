"""One run of the gate: jobs, results, verdicts."""

from __future__ import annotations

import os
import tempfile
import time
from pathlib import Path

from gelu_verify import session
from gelu_verify.baseline import Folder, Key
from gelu_verify.campaign.checked import is_swept
from gelu_verify.campaign.run import Plan
from gelu_verify.config.settings import Settings
from gelu_verify.gate import decide
from gelu_verify.gate.decide import Again
from gelu_verify.gate.record import GateResults
from gelu_verify.job import Job
from gelu_verify.kernels.isolation import OnCheck
from gelu_verify.kernels.listener import Limits
from gelu_verify.records import Results


def run(
    jobs: list[Job], settings: Settings, configured: set[Key], again: Again, on_check: OnCheck
) -> GateResults:
    """Run the gate. Baselines are read first: one that cannot be read ends it before anything runs.

    configured: what baselines may be of; others have disappeared.
    Raises :class:`gelu_verify.errors.UsageError` for that, and for kernels that are none.
    """
    started = time.monotonic()
    folder = Folder.read(Path(settings.baselines))
    results = measure(jobs, settings, on_check)
    swept = tuple(r for r in results.kernels if not r.replayed)
    compared = decide.compare(jobs, swept, results.environment, folder, configured, again)
    return GateResults.of(results, settings, compared, time.monotonic() - started)


def measure(jobs: list[Job], settings: Settings, on_check: OnCheck) -> Results:
    """Run jobs in child processes, several kernels at a time."""
    cores = os.cpu_count() or 1
    # A campaign over all inputs of fp32 takes every core itself.
    processes = 1 if any(is_swept(job) for job in jobs) else settings.workers or cores
    limits = session.shared(Limits.default(settings.timeout), processes)
    # A kernel may import what a ledger's key does not cover: a gate measures everything anew.
    with tempfile.TemporaryDirectory() as folder:
        how = Plan(folder=Path(folder), seconds=max(settings.timeout, Plan.seconds))
        return session.run(jobs, limits, on_check, how, processes=processes)
