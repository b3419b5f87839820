"""Which engine measures on a device, and the one that leaves all to the general pass."""

from __future__ import annotations

import torch

from gelu_verify.exhaustive.figures import Figures
from gelu_verify.exhaustive.limits import limits_of
from gelu_verify.exhaustive.measuring import Pass
from gelu_verify.exhaustive.names import is_compiled
from gelu_verify.exhaustive.settling import Engine, Leftovers


class TorchEngine:
    """Settles nothing: every range goes through the general pass, in torch, on any device."""

    name = "torch"

    def __init__(self, formula: str, derivative: int) -> None:
        self._empty = Figures.of(formula, derivative)

    def measure(self, first: int, actual: torch.Tensor, lead: int) -> Leftovers:
        """Return the call's whole range."""
        return Leftovers([(first, first + actual.numel() - lead)], ())

    def take(self) -> Figures:
        """Return rows without anything."""
        return self._empty


def engine_for(general: Pass, device: torch.device) -> Engine:
    """Return the engine that measures for a pass on a device."""
    formula, derivative = general.formula, general.operator.derivative
    if device.type == "cuda":
        from gelu_verify.exhaustive.gpu_engine import GpuEngine

        return GpuEngine(formula, derivative, limits_of(general), device)
    if is_compiled():
        from gelu_verify.exhaustive.cpu_engine import CpuEngine

        return CpuEngine(formula, derivative, limits_of(general))
    return TorchEngine(formula, derivative)
