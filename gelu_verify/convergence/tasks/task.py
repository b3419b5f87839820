"""The record that a task is: data, a model with sites, and how it is trained."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass

from torch import Tensor, nn

from gelu_verify.convergence.sites import Site

#: Share of the steps over which the learning rate rises.
_WARMUP = 0.1


@dataclass(frozen=True)
class Data:
    """Examples with the class that each position has, and where they are from.

    inputs: (N, ...) float32 or int64; targets: (N,) or (N, T) int64, as the model's logits less
    their last dimension.
    """

    source: str
    train_inputs: Tensor
    train_targets: Tensor
    valid_inputs: Tensor
    valid_targets: Tensor

    def digest(self) -> str:
        """Return 16 hex digits of the SHA-256 of all of it."""
        state = hashlib.sha256()
        for part in (
            self.train_inputs,
            self.train_targets,
            self.valid_inputs,
            self.valid_targets,
        ):
            state.update(str((part.dtype, tuple(part.shape))).encode())
            state.update(part.contiguous().numpy().tobytes())
        return state.hexdigest()[:16]


@dataclass(frozen=True)
class Task:
    """A training problem: AdamW, cross-entropy, a learning rate that rises and falls linearly.

    build: the model, drawn from torch's global generator, with the site where its operator stands.
    batch: examples a step. evaluations: points of the validation curve after the first, evenly
    spaced over the steps. bf16 and fp16 train under autocast, with weights in fp32.
    operator: what a site computes, one of ``sites.PLACES``; linear_gelu is
    ``(x, weight, bias) -> f(x·weightᵀ + bias)``.
    """

    name: str
    summary: str
    load: Callable[[], Data]
    build: Callable[[Site], nn.Module]
    steps: int
    batch: int
    learning_rate: float
    weight_decay: float = 0.01
    evaluations: int = 10
    operator: str = "linear_gelu"

    def rate(self, step: int) -> float:
        """Return the learning rate of a step, 1 to ``steps``."""
        rise = min(1.0, step / (_WARMUP * self.steps))
        return self.learning_rate * rise * (1 - (step - 1) / self.steps)

    def recipe(self) -> str:
        """Return how it is trained, as a line that tells recipes apart."""
        return (
            f"{self.steps} steps of {self.batch}, AdamW up to {self.learning_rate:g}, "
            f"weight decay {self.weight_decay:g}, {self.evaluations} evaluations"
        )
