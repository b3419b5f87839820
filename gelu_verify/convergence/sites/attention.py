"""``(q, k, v) -> softmax(q·kᵀ/√d)·v`` without a mask.

Written out: on a GPU torch's fused one adds up its gradients in any order.
"""

from __future__ import annotations

import math

from torch import Tensor

from gelu_verify.convergence.sites.kernels import Activation
from gelu_verify.convergence.sites.place import Place, Site


def attend(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | float = 0.0) -> Tensor:
    """Return softmax(q·kᵀ/√d + mask)·v, (..., L, D)."""
    return (q @ k.mT / math.sqrt(q.shape[-1]) + mask).softmax(-1) @ v


def _written(activation: Activation) -> Site:
    return attend


PLACE = Place("attention", _written)
