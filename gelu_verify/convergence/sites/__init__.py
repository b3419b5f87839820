"""What stands at the activations of a model: the exact formula, torch's own, or the kernel.

One module an operator that a model's layers can take, each with its ``PLACE``; ``place`` is the
record that they are, ``kernels`` how a kernel is called there.
"""

from __future__ import annotations

import torch

from gelu_verify.convergence.sites import (
    attention,
    conv_relu_pool,
    geglu,
    layernorm_gelu,
    linear_gelu,
)
from gelu_verify.convergence.sites.place import Isolated, Place, Site
from gelu_verify.errors import UsageError, unknown_name
from gelu_verify.formats import Format, tensors
from gelu_verify.operators import fused

__all__ = ["PLACES", "Isolated", "Place", "Site", "get", "require_trainable"]

_ALL = (
    linear_gelu.PLACE,
    geglu.PLACE,
    layernorm_gelu.PLACE,
    attention.PLACE,
    conv_relu_pool.PLACE,
)
PLACES: dict[str, Place] = {place.operator: place for place in _ALL}


def get(operator: str) -> Place:
    """Return the place of an operator; another is a usage error naming the nearest."""
    if operator not in PLACES:
        raise unknown_name("operator of a task", operator, PLACES)
    return PLACES[operator]


def require_trainable(
    place: Place, site: Site, fmt: Format, device: torch.device, name: str
) -> None:
    """Raise a usage error unless a gradient comes back through a site."""
    operator = fused.get(place.operator)
    dtype = tensors.dtype(fmt)
    shapes = operator.shapes(dict.fromkeys(operator.dims, 4))
    arguments = [torch.ones(shape, dtype=dtype, device=device) for shape in shapes]
    if site(arguments[0].requires_grad_(), *arguments[1:]).grad_fn is None:
        raise UsageError(
            f"kernel {name}: got a result without a gradient, expected one to train with. "
            "Name the kernel of its gradient with --backward."
        )
