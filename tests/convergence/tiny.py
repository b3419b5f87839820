"""A task that trains in a tenth of a second: points in a ring and in its middle."""

import torch
from torch import nn

from gelu_verify.convergence.tasks import Data, Task
from gelu_verify.convergence.tasks.task import Activated


def _data() -> Data:
    generator = torch.Generator().manual_seed(0)
    points = 1.5 * torch.randn(600, 8, generator=generator)
    flips = torch.rand(600, generator=generator) < 0.1  # so that no model gets them all
    classes = ((points.square().sum(1) > 16) ^ flips).long()
    return Data("drawn", points[:400], classes[:400], points[400:], classes[400:])


def _model(site) -> nn.Module:
    return nn.Sequential(Activated(8, 16, site), Activated(16, 16, site), nn.Linear(16, 2))


TASK = Task("ring", "a ring", _data, _model, steps=20, batch=32, learning_rate=1e-2, evaluations=3)
