"""ReLU and maxima, which pick one of their arguments, and gradients that follow the pick.

Neither rounds, and both are 1-Lipschitz: a maximum moves by no more than one of its arguments.
"""

from __future__ import annotations

import torch
from torch import Tensor

from gelu_verify.bounds.bounded import Bounded

SELECTION = "selection"


def rectified_maximum(a: Bounded) -> Bounded:
    """Return ``max(0, a_1, ..., a_n)`` over the last dimension, with the slack of a_i that may win.

    It may rise to the largest ``a_i + δ_i`` and fall to the largest ``a_i - δ_i`` (or 0). One a_i
    without a bound (its own is NaN) leaves the maximum without one, infinite or not.
    """
    value = a.value.amax(-1).clamp(min=0.0)
    unbounded = (torch.isfinite(a.value) & torch.isnan(a.total + a.own)).any(-1)
    value = torch.where(unbounded & ~value.isnan(), 0.0, value)
    top = (a.value + a.total + a.own).amax(-1).clamp(min=0.0)
    bottom = (a.value - a.total - a.own).amax(-1).clamp(min=0.0)
    moved = torch.maximum(top - value, value - bottom)
    # A negative pre-activation that cannot reach 0 leaves nothing; else the widest that may win.
    own = torch.where(top > 0, a.own.amax(-1), 0.0)
    wide = a.total.amax(-1)
    share = torch.where(wide > 0, torch.minimum(moved, wide) / wide, 0.0)
    widest = a.total.argmax(-1, keepdim=True)
    slack = {name: p.gather(-1, widest).squeeze(-1) * share for name, p in a.slack.items()}
    return Bounded(value, own, slack)


def routed(dy: Tensor, a: Bounded) -> Bounded:
    """Return the gradient of ``rectified_maximum(a)``: dy for the largest, if above 0, else 0.

    dy: float64, (...); result (..., n). Where it is not certain which is the largest, or on which
    side of 0 it is, a kernel may have dy or 0: the slack of the selection is ``|dy|``.
    """
    wide = a.total + a.own
    low, high = a.value - wide, a.value + wide
    first = torch.zeros_like(a.value).scatter(-1, a.value.argmax(-1, keepdim=True), 1.0).bool()
    passes = first & (a.value > 0)
    may = (high >= _others(low)) & (high >= 0)
    must = (low > _others(high)) & (low > 0)
    dy = dy.unsqueeze(-1).expand_as(a.value)
    value = torch.where(passes, dy, 0.0)
    # NaN is neither: it promises nothing.
    slack = torch.where(may & ~must, dy.abs(), 0.0)
    slack = torch.where(torch.isfinite(wide), slack, torch.inf)
    return Bounded(value, torch.zeros_like(value), {SELECTION: slack})


def _others(a: Tensor) -> Tensor:
    """Return for each of the last dimension the largest of the others."""
    alone = torch.eye(a.shape[-1], dtype=torch.bool, device=a.device)
    return a.unsqueeze(-2).masked_fill(alone, -torch.inf).amax(-1)
