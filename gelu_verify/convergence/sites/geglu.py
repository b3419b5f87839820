"""``(gate, up) -> f(gate)·up``: the two halves of a gated layer."""

from __future__ import annotations

import torch

from gelu_verify.convergence.sites.kernels import Activation
from gelu_verify.convergence.sites.place import Isolated, Place, Site


def _written(activation: Activation) -> Site:
    return lambda gate, up: activation(gate) * up


PLACE = Place(
    "geglu",
    _written,
    isolated=Isolated(
        input=lambda gate, up: gate,
        gradient=lambda dy, gate, up: dy * up,
        # A product with 1 changes no bit.
        alone=lambda site, x: site(x, torch.ones_like(x)),
    ),
)
