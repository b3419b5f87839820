"""``(x, weight, bias)``: 3×3 convolution with padding 1, ReLU, 2×2 maxima."""

from __future__ import annotations

from torch import Tensor
from torch.nn import functional

from gelu_verify.convergence.sites.kernels import Activation
from gelu_verify.convergence.sites.place import Place, Site


def _pooled(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    return functional.max_pool2d(functional.relu(functional.conv2d(x, weight, bias, padding=1)), 2)


def _written(activation: Activation) -> Site:
    return _pooled


PLACE = Place("conv_relu_pool", _written)
