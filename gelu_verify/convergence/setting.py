"""What the arms of an experiment share, and a forward pass of each of them."""

from __future__ import annotations

from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from gelu_verify.convergence import sites
from gelu_verify.convergence.records import Arm
from gelu_verify.convergence.sites import Place, Site
from gelu_verify.convergence.tasks import Data, Task
from gelu_verify.formats import Format

#: Validation examples in one call of the model.
_CHUNK = 512


@dataclass(frozen=True)
class Setting:
    """What the arms of an experiment share, and the kernel that one of them has."""

    task: Task
    data: Data
    formula: str
    fmt: Format
    device: torch.device
    kernel: Site

    @property
    def place(self) -> Place:
        """Where in the task's model sites stand."""
        return sites.get(self.task.operator)

    def on_device(self) -> Setting:
        """Return the same with its data where it is trained."""
        moved = {
            name: getattr(self.data, name).to(self.device)
            for name in ("train_inputs", "train_targets", "valid_inputs", "valid_targets")
        }
        data = Data(source=self.data.source, **moved)
        return replace(self, data=data)

    def site(self, arm: Arm, seed: int) -> Site:
        """Return what stands at the model's places in an arm."""
        if arm in (Arm.EXACT64, Arm.REFERENCE):
            return self.place.exact(self.formula)
        if arm is Arm.EAGER:
            return self.place.eager(self.formula)
        if arm is Arm.NOISE:
            drawn = torch.Generator(self.device).manual_seed(seed + 1)
            return self.place.noisy(self.formula, self.fmt, drawn)
        return self.kernel

    def dtype(self, arm: Arm) -> torch.dtype:
        """Return what the weights are kept in: fp32 under autocast to 16 bits."""
        wide = arm is Arm.EXACT64 or self.fmt.bits == 64
        return torch.float64 if wide else torch.float32

    def autocast(self, arm: Arm) -> AbstractContextManager[Any]:
        """Return the context that a forward pass of an arm runs in."""
        narrow = self.fmt.bits == 16 and arm is not Arm.EXACT64
        dtype = {"bf16": torch.bfloat16, "fp16": torch.float16}.get(self.fmt.name)
        return torch.autocast(self.device.type, dtype=dtype, enabled=narrow)

    def build(self, arm: Arm, seed: int, site: Site) -> nn.Module:
        """Return the untrained model of a seed, the same weights in every arm."""
        devices = [self.device] if self.device.type == "cuda" else []
        with torch.random.fork_rng(devices=devices):
            torch.manual_seed(seed)
            model = self.task.build(site)
        return model.to(device=self.device, dtype=self.dtype(arm))


def predict(setting: Setting, arm: Arm, model: nn.Module, inputs: Tensor) -> Tensor:
    """Return the logits of inputs (N, ...), (N, ..., C), at least fp32."""
    if inputs.is_floating_point():
        inputs = inputs.to(setting.dtype(arm))
    with setting.autocast(arm):
        logits = model(inputs)
    return logits.to(setting.dtype(arm))


def loss_of(
    setting: Setting, arm: Arm, model: nn.Module, inputs: Tensor, targets: Tensor
) -> Tensor:
    """Return the mean cross-entropy of examples."""
    logits = predict(setting, arm, model, inputs)
    return functional.cross_entropy(logits.flatten(0, -2), targets.flatten())


@torch.no_grad()
def evaluate(setting: Setting, arm: Arm, model: nn.Module) -> tuple[float, float]:
    """Return mean cross-entropy and accuracy over the whole validation set."""
    total, right, count = 0.0, 0, 0
    data = setting.data
    for inputs, targets in zip(
        data.valid_inputs.split(_CHUNK), data.valid_targets.split(_CHUNK), strict=True
    ):
        logits = predict(setting, arm, model, inputs).flatten(0, -2)
        total += float(functional.cross_entropy(logits, targets.flatten(), reduction="sum"))
        right += int((logits.argmax(-1) == targets.flatten()).sum())
        count += targets.numel()
    return total / count, right / count
