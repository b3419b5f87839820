"""What must hold for a fused kernel: one file a check, and the one list of them."""

from __future__ import annotations

from collections.abc import Callable

from gelu_verify.checks.case import Outcome
from gelu_verify.checks.fused import bound, gradient
from gelu_verify.checks.fused.case import FusedCase

__all__ = ["CHECKS", "REPLAYED", "FusedCase"]

Check = Callable[[FusedCase], Outcome]

CHECKS: dict[str, Check] = {
    "bound": bound.run,
    "gradient": gradient.run,
}

#: Those that run on given cases alone.
REPLAYED = ("bound", "gradient")
