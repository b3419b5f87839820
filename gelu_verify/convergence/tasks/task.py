"""The record that a task is: data, a model with sites, and how it is trained."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
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

    build: the model, drawn from torch's global generator, with the site at its activations.
    batch: examples a step. evaluations: points of the validation curve after the first, evenly
    spaced over the steps. bf16 and fp16 train under autocast, with weights in fp32.
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


class Activated(nn.Module):
    """A linear layer with its activation: the place that a site fills."""

    def __init__(self, inputs: int, outputs: int, site: Site) -> None:
        super().__init__()
        made = nn.Linear(inputs, outputs)
        self.weight, self.bias = made.weight, made.bias
        self.site = site

    def forward(self, x: Tensor) -> Tensor:
        """Return f(x·weightᵀ + bias), (..., outputs)."""
        return self.site(x, self.weight, self.bias)


class Block(nn.Module):
    """A pre-norm transformer block: attention, then a multilayer perceptron with one site.

    Attention is written out: on a GPU torch's fused one adds up its gradients in any order.
    """

    mask: Tensor

    def __init__(self, width: int, heads: int, length: int, causal: bool, site: Site) -> None:
        super().__init__()
        self.heads = heads
        later = torch.ones(length, length, dtype=torch.bool).triu(1) & causal
        self.register_buffer("mask", torch.zeros(length, length).masked_fill(later, -math.inf))
        self.before_attention, self.before_mlp = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = Activated(width, 4 * width, site), nn.Linear(4 * width, width)

    def forward(self, x: Tensor) -> Tensor:
        """Return (B, T, width) for (B, T, width)."""
        batch, length, width = x.shape
        qkv = self.qkv(self.before_attention(x)).view(batch, length, 3, self.heads, -1)
        q, k, v = qkv.permute(2, 0, 3, 1, 4)
        scores = q @ k.mT / math.sqrt(q.shape[-1]) + self.mask[:length, :length]
        mixed = scores.softmax(-1) @ v
        x = x + self.out(mixed.transpose(1, 2).reshape(batch, length, width))
        return x + self.down(self.up(self.before_mlp(x)))


class Learnt(nn.Module):
    """Position embeddings, (length, width), added to (B, length, width)."""

    def __init__(self, length: int, width: int) -> None:
        super().__init__()
        self.table = nn.Parameter(0.02 * torch.randn(length, width))

    def forward(self, x: Tensor) -> Tensor:
        """Return x with its positions marked."""
        return x + self.table[: x.shape[1]]
