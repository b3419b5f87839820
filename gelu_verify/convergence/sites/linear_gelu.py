"""``(x, weight, bias) -> f(x·weightᵀ + bias)``: a linear layer and its activation.

Its product is torch's in every arm but that of a kernel of the whole: the exact arms differ from
torch's own in the activation alone.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional

from gelu_verify.convergence.sites import kernels
from gelu_verify.convergence.sites.autocast import lifted
from gelu_verify.convergence.sites.kernels import Activation, Kernel
from gelu_verify.convergence.sites.place import Isolated, Place, Site


def _written(activation: Activation) -> Site:
    return lambda x, weight, bias: activation(functional.linear(x, weight, bias))


def _of_bias(function: Kernel) -> Site:
    def site(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
        product = functional.linear(x, weight)
        arguments = (product, bias.to(product.dtype))
        return kernels.called(function, arguments, product.shape, product.dtype)

    return site


def _of_rows(function: Kernel) -> Site:
    """Return the site of a kernel that gets x as rows (M, K), whatever the layer is given."""

    def site(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
        with lifted((x.reshape(-1, x.shape[-1]), weight, bias)) as given:
            shape = torch.Size((len(given[0]), len(weight)))
            y = kernels.called(function, given, shape, given[0].dtype)
        return y.reshape(*x.shape[:-1], len(weight))

    return site


def _alone(site: Site, x: Tensor) -> Tensor:
    """Return f(x): a product with the unit matrix changes no bit."""
    weight = torch.eye(x.shape[-1], dtype=x.dtype, device=x.device)
    return site(x, weight, torch.zeros(x.shape[-1], dtype=x.dtype, device=x.device))


PLACE = Place(
    "linear_gelu",
    _written,
    fitted={"bias_gelu": _of_bias, "linear_gelu": _of_rows},
    whole=False,
    isolated=Isolated(
        input=functional.linear, gradient=lambda dy, x, weight, bias: dy, alone=_alone
    ),
)
