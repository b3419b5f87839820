"""What must hold for a fused kernel: one file a check, and the one list of them."""

from __future__ import annotations

from collections.abc import Callable

from gelu_verify.checks.case import Outcome
from gelu_verify.checks.fused import (
    aliasing,
    batch,
    bound,
    configurations,
    determinism,
    double_backward,
    dtypes,
    fingerprint,
    gradient,
    gradient_formula,
    gradient_layouts,
    gradient_sums,
    identity,
    large,
    memory,
    opcheck,
)
from gelu_verify.checks.fused.case import FusedCase
from gelu_verify.job import Job

__all__ = ["CHECKS", "REPLAYED", "FusedCase", "of"]

Check = Callable[[FusedCase], Outcome]

#: In the order they run and are reported; conduct first, as for elementwise kernels.
CHECKS: dict[str, Check] = {
    "memory": memory.run,
    "aliasing": aliasing.run,
    "determinism": determinism.run,
    "bound": bound.run,
    "gradient": gradient.run,
    "gradient_layouts": gradient_layouts.run,
    "gradient_formula": gradient_formula.run,
    "double_backward": double_backward.run,
    "batch": batch.run,
    "configurations": configurations.run,
    "large": large.run,
    "fingerprint": fingerprint.run,
    "gradient_sums": gradient_sums.run,
    "identity": identity.run,
    "dtypes": dtypes.run,
    "opcheck": opcheck.run,
}

#: Those that run on given cases alone.
REPLAYED = (
    "memory",
    "aliasing",
    "determinism",
    "bound",
    "gradient",
    "gradient_layouts",
    "double_backward",
    "batch",
    "configurations",
    "large",
    "dtypes",
    "opcheck",
)


def of(job: Job) -> dict[str, Check]:
    """Return the checks of a job of a fused operator, in order."""
    names = REPLAYED if job.cases else tuple(CHECKS)
    wanted = set(job.checks or names) - set(job.without)
    return {name: CHECKS[name] for name in names if name in wanted}
