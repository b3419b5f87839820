"""``(x, weight, bias) -> f(LN(x)·weight + bias)``: layer normalisation and its activation."""

from __future__ import annotations

from torch import Tensor
from torch.nn import functional

from gelu_verify.convergence.sites.kernels import Activation
from gelu_verify.convergence.sites.place import Place, Site
from gelu_verify.operators.fused.layernorm_gelu import EPSILON


def _written(activation: Activation) -> Site:
    def site(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
        return activation(functional.layer_norm(x, weight.shape, weight, bias, float(EPSILON)))

    return site


PLACE = Place("layernorm_gelu", _written)
