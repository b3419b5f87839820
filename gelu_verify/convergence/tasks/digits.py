"""Handwritten digits, 1,797 images of 8×8, from scikit-learn: perceptrons, patches, convolutions.

Models of the reference arm end with 91 to 99 % of the validation images right; chance is 10 %.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import torch
from torch import Tensor, nn

from gelu_verify.convergence.sites import Site
from gelu_verify.convergence.sites.attention import attend
from gelu_verify.convergence.tasks.layers import (
    Activated,
    Block,
    Gated,
    Learnt,
    Mixed,
    Normed,
    Pooled,
)
from gelu_verify.convergence.tasks.task import Data, Task
from gelu_verify.errors import UnavailableError

_VALIDATION = 450


def load() -> Data:
    """Return the images, (N, 64) from 0 to 1, split once and for all, a quarter for validation."""
    try:
        from sklearn.datasets import load_digits
    except ImportError:
        raise UnavailableError(
            "task: got no scikit-learn, whose digits it trains on. "
            "Install it: pip install 'gelu_verify[converge]'."
        ) from None
    found = load_digits()
    images = torch.from_numpy(found.data).float() / 16
    classes = torch.from_numpy(found.target).long()
    order = torch.randperm(len(images), generator=torch.Generator().manual_seed(0))
    valid, train = order[:_VALIDATION], order[_VALIDATION:]
    return Data(
        "sklearn.datasets.load_digits", images[train], classes[train], images[valid], classes[valid]
    )


def perceptron(site: Site) -> nn.Module:
    """Return 64 → 64 → 64 → 10 with two sites."""
    return nn.Sequential(Activated(64, 64, site), Activated(64, 64, site), nn.Linear(64, 10))


def gated(site: Site) -> nn.Module:
    """Return the perceptron with gated layers."""
    return nn.Sequential(Gated(64, 64, site), Gated(64, 64, site), nn.Linear(64, 10))


def normed(site: Site) -> nn.Module:
    """Return the perceptron with normalised layers."""
    return nn.Sequential(Normed(64, 64, site), Normed(64, 64, site), nn.Linear(64, 10))


def convolutions(site: Site) -> nn.Module:
    """Return 1 → 8 → 16 channels on 8×8, 4×4, 2×2 places, then 64 → 10, with two sites."""
    pictures = nn.Unflatten(1, (1, 8, 8))
    layers = Pooled(1, 8, site), Pooled(8, 16, site)
    return nn.Sequential(pictures, *layers, nn.Flatten(), nn.Linear(64, 10))


def attending(site: Site) -> nn.Module:
    """Return one block of one head over the eight rows of an image, then 256 → 10, with a site."""
    wide = nn.Sequential(nn.Linear(32, 128), nn.GELU())
    rows = nn.Unflatten(1, (8, 8)), nn.Linear(8, 32), Learnt(8, 32)
    block = Block(32, Mixed(32, 1, site), wide)
    return nn.Sequential(*rows, block, nn.Flatten(), nn.Linear(256, 10))


class PatchTransformer(nn.Module):
    """16 patches of 2×2, width 32, two blocks with a site each, mean over the patches."""

    def __init__(self, site: Site) -> None:
        super().__init__()
        self.embed = nn.Linear(4, 32)
        self.place = Learnt(16, 32)
        made = (Block(32, Mixed(32, 2, attend), Activated(32, 128, site)) for _ in range(2))
        self.blocks = nn.Sequential(*made)
        self.norm, self.head = nn.LayerNorm(32), nn.Linear(32, 10)

    def forward(self, x: Tensor) -> Tensor:
        """Return logits (B, 10) for images (B, 64)."""
        rows = x.view(-1, 4, 2, 4, 2).permute(0, 1, 3, 2, 4).reshape(-1, 16, 4)
        mixed = self.blocks(self.place(self.embed(rows)))
        return self.head(self.norm(mixed).mean(1))


def _task(
    name: str,
    summary: str,
    build: Callable[[Site], nn.Module],
    steps: int,
    learning_rate: float,
    operator: str = "linear_gelu",
) -> Task:
    summary = f"{summary} on 8×8 digits"
    return Task(name, summary, load, build, steps, 64, learning_rate, operator=operator)


TASKS = (
    _task("digits-mlp", "perceptron", perceptron, 250, 3e-3),
    _task("digits-transformer", "patch transformer", PatchTransformer, 300, 6e-3),
    _task("digits-gated", "gated perceptron", gated, 250, 3e-3, "geglu"),
    _task("digits-norm", "normalised perceptron", normed, 250, 3e-3, "layernorm_gelu"),
    # Triton's interpreter takes 0.1 s for the attention of one image and its gradient.
    replace(
        _task("digits-attention", "attention over rows", attending, 250, 3e-3, "attention"),
        batch=16,
        evaluations=5,
    ),
    _task("digits-conv", "convolutions", convolutions, 250, 6e-3, "conv_relu_pool"),
)
