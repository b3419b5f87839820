"""What must hold: one file a check, and the one list of them."""

from __future__ import annotations

from collections.abc import Callable

from gelu_verify.checks import (
    accuracy,
    conduct,
    dtypes,
    formula,
    invariants,
    memory,
    routes,
    saturation,
    special_values,
)
from gelu_verify.checks.case import Case, Outcome

__all__ = ["CHECKS", "REPLAYED", "Case", "Outcome"]

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

#: Those that say something about single inputs.
REPLAYED = ("accuracy", "special_values", "invariants", "routes")
