"""Which engine measures on a device, and the one that leaves all to the general pass."""

from __future__ import annotations

import importlib.util
from importlib import metadata

import torch

from gelu_verify.exhaustive.figures import Figures
from gelu_verify.exhaustive.measuring import Pass
from gelu_verify.exhaustive.settling import Engine, Leftovers, limits_of


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
    if _compiled():
        from gelu_verify.exhaustive.cpu_engine import CpuEngine

        return CpuEngine(formula, derivative, limits_of(general))
    return TorchEngine(formula, derivative)


def engine_name(device: str) -> str:
    """Return the name of the engine that measures on a device here, with its version."""
    if device.startswith("cuda"):
        return f"triton {metadata.version('triton')}"
    return f"numba {metadata.version('numba')}" if _compiled() else "torch"


def _compiled() -> bool:
    return importlib.util.find_spec("numba") is not None
