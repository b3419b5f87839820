"""Handwritten digits, 1,797 images of 8×8, from scikit-learn: a perceptron, a patch transformer."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from gelu_verify.convergence.sites import Site
from gelu_verify.convergence.tasks.task import Activated, Block, Data, Learnt, Task
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


class PatchTransformer(nn.Module):
    """16 patches of 2×2, width 32, two blocks, mean over the patches."""

    def __init__(self, site: Site) -> None:
        super().__init__()
        self.embed = nn.Linear(4, 32)
        self.place = Learnt(16, 32)
        self.blocks = nn.Sequential(*(Block(32, 2, 16, False, site) for _ in range(2)))
        self.norm, self.head = nn.LayerNorm(32), nn.Linear(32, 10)

    def forward(self, x: Tensor) -> Tensor:
        """Return logits (B, 10) for images (B, 64)."""
        rows = x.view(-1, 4, 2, 4, 2).permute(0, 1, 3, 2, 4).reshape(-1, 16, 4)
        mixed = self.blocks(self.place(self.embed(rows)))
        return self.head(self.norm(mixed).mean(1))


TASKS = (
    Task("digits-mlp", "perceptron on 8×8 digits", load, perceptron, 250, 64, 3e-3),
    Task(
        "digits-transformer",
        "patch transformer on 8×8 digits",
        load,
        PatchTransformer,
        300,
        64,
        6e-3,
    ),
)
