"""What must hold: one file a check, and the one list of them."""

from __future__ import annotations

from collections.abc import Callable

from gelu_verify.checks import (
    accuracy,
    comparable,
    conduct,
    dtypes,
    examples,
    formula,
    invariants,
    memory,
    routes,
    saturation,
    special_values,
)
from gelu_verify.checks.case import Case, Outcome
from gelu_verify.job import Job

__all__ = ["CHECKS", "FOR_GATES", "REPLAYED", "Case", "Outcome", "of"]

Check = Callable[[Case], Outcome]

#: In the order they run and are reported; memory and conduct first, because a kernel that returns
#: the wrong shape or overwrites its input makes every figure after it meaningless.
CHECKS: dict[str, Check] = {
    "memory": memory.run,
    "conduct": conduct.run,
    "accuracy": accuracy.run,
    "formula": formula.run,
    "special_values": special_values.run,
    "saturation": saturation.run,
    "invariants": invariants.run,
    "routes": routes.run,
    "dtypes": dtypes.run,
}

#: What a gate asks for beside them.
FOR_GATES: dict[str, Check] = {"examples": examples.run, "comparable": comparable.run}

#: Those that say something about single inputs.
REPLAYED = ("accuracy", "special_values", "invariants", "routes")


def of(job: Job) -> dict[str, Check]:
    """Return the checks of an elementwise job, in order."""
    if job.checks or job.replay:
        chosen = {name: run for name, run in CHECKS.items() if name in (job.checks or REPLAYED)}
    else:
        asked = {"examples": job.examples > 0, "comparable": job.comparable}
        chosen = CHECKS | {name: run for name, run in FOR_GATES.items() if asked[name]}
    return {name: run for name, run in chosen.items() if name not in job.without}
