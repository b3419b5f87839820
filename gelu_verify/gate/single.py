"""The gate of one kernel, that may be a function at hand: for pytest."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from gelu_verify import api, session
from gelu_verify.baseline import Folder
from gelu_verify.config.reading import parsed
from gelu_verify.config.settings import KernelEntry, Settings
from gelu_verify.gate import decide, plan, run
from gelu_verify.gate.decide import Again
from gelu_verify.gate.record import Against, GateResults


def check(
    kernel: str | Callable[..., Any],
    settings: Settings,
    claims: Mapping[str, Any],
    given: Mapping[str, str | None],
    again: Again,
) -> GateResults:
    """Run the gate of a kernel: by name in a child process, a function in this one.

    claims: over the settings' own. given: options of a command line, over both. A kernel without a
    baseline is held to its contract alone: a test asks for no more.
    Raises :class:`gelu_verify.errors.UsageError` for claims that are none.
    """
    started = time.monotonic()
    declared = None if isinstance(kernel, str) else api.spec_of(kernel)
    name = kernel if isinstance(kernel, str) else declared.name if declared else ""
    entry = parsed(KernelEntry, {**claims, "kernel": name}, "accuracy_gate", strict=False)
    one = settings.model_copy(update={"kernels": (entry,)}).over(dict(given))
    jobs = plan.of_kernel(one.kernels[0], one, declared)
    if isinstance(kernel, str):
        results = run.measure(jobs, one, _quiet)
    else:
        results = session.run_here(jobs, _quiet, kernel)
    folder = Folder.read(Path(one.baselines))
    swept = tuple(r for r in results.kernels if not r.replayed)
    compared = decide.compare(jobs, swept, results.environment, folder, set(folder.keys()), again)
    kept = (c for c in compared if c.verdict is not Against.MISSING)
    return GateResults.of(results, one, kept, time.monotonic() - started)


def _quiet(_index: int, _check: str) -> None:
    return None
