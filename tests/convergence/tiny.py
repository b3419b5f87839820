"""Tasks that train in a tenth of a second, one an operator: points in a ring and in its middle."""

from functools import partial

import torch
from torch import nn

from gelu_verify.convergence.tasks import Data, Task
from gelu_verify.convergence.tasks.layers import Activated, Gated, Mixed, Normed, Pooled


def _data(width: int = 8) -> Data:
    generator = torch.Generator().manual_seed(0)
    points = 1.5 * torch.randn(600, width, generator=generator)
    flips = torch.rand(600, generator=generator) < 0.1  # so that no model gets them all
    classes = ((points.square().sum(1) > 2 * width) ^ flips).long()
    return Data("drawn", points[:400], classes[:400], points[400:], classes[400:])


def _model(site, layer=Activated) -> nn.Module:
    return nn.Sequential(layer(8, 16, site), layer(16, 16, site), nn.Linear(16, 2))


def _gated(site) -> nn.Module:
    return _model(site, Gated)


def _normed(site) -> nn.Module:
    return _model(site, Normed)


def _mixed(site) -> nn.Module:
    """Return four tokens of two numbers, attention among them."""
    tokens = nn.Unflatten(1, (4, 2)), nn.Linear(2, 32), nn.GELU()
    return nn.Sequential(*tokens, Mixed(32, 2, site), nn.GELU(), nn.Flatten(), nn.Linear(128, 2))


def _pooled(site) -> nn.Module:
    pictures = nn.Unflatten(1, (1, 4, 4))
    layers = Pooled(1, 8, site), Pooled(8, 8, site)
    return nn.Sequential(pictures, *layers, nn.Flatten(), nn.Linear(8, 2))


TASK = Task("ring", "a ring", _data, _model, steps=20, batch=32, learning_rate=1e-2, evaluations=3)

_of = partial(Task, summary="a ring", steps=20, batch=32, learning_rate=1e-2, evaluations=3)
GATED = _of("gated", load=_data, build=_gated, operator="geglu")
NORM = _of("norm", load=_data, build=_normed, operator="layernorm_gelu")
ATTENTION = _of("attention", load=_data, build=_mixed, operator="attention")
CONV = _of("conv", load=partial(_data, 16), build=_pooled, operator="conv_relu_pool")
