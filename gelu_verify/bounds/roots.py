"""The reciprocal square root of a variance."""

from __future__ import annotations

import torch
from torch import Tensor

from gelu_verify.bounds import bounded
from gelu_verify.bounds.arithmetic import Arithmetic
from gelu_verify.bounds.bounded import Bounded

_UNIT = 2.0**-53
#: The sum and its constant, and a reciprocal root off by 2 ULP (CUDA's rsqrtf; PTX's is better).
_ROUNDINGS = 6


def reciprocal_root(a: Bounded, offset: float, arithmetic: Arithmetic) -> Bounded:
    """Return ``1/√(a + offset)`` of a sum of squares, which no kernel has below 0; offset > 0.

    It falls and is convex: over [a - δ, a + δ] without what is below 0 it moves by at most δ times
    the slope at the lower end, and by no more than to one of the ends.
    """
    value = _at(a.value, offset)
    moved = _moved(a.value, a.total + a.own, offset)
    share = torch.where(a.total > 0, moved / a.total, 0.0)
    slack = {name: part * share for name, part in a.slack.items()}
    own = _moved(a.value, a.own, offset) + 4 * _UNIT * value
    return bounded.rounded(Bounded(value, own, slack), arithmetic, _ROUNDINGS)


def _at(a: Tensor, offset: float) -> Tensor:
    return 1 / (a + offset).sqrt()


def _moved(a: Tensor, by: Tensor, offset: float) -> Tensor:
    """Return how far the function may move from its value at ``a``, float64."""
    low = (a - by).clamp(min=0.0)
    steep = 0.5 * by * _at(low, offset) / (low + offset)
    middle = _at(a, offset)
    ends = torch.maximum(_at(low, offset) - middle, middle - _at(a + by, offset))
    return torch.minimum(steep, ends + 8 * _UNIT * _at(low, offset))
