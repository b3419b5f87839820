"""The left tail: cancellation, cut-offs, fits beyond where they hold."""

from __future__ import annotations

import torch
from torch import Tensor

from gelu_verify.selftest.entry import Kind, defect
from reference_kernels.sound import forms


@defect(
    Kind.TAIL,
    report="pytorch/pytorch#187806",
    contract="tail_accurate",
    rejected_by={"accuracy": "collapse"},
    unseen_because="what is lost is below 2e-7, and the test has one limit for all sizes",
)
def one_plus_erf(x: Tensor) -> Tensor:
    """0.5x(1+erf) in fp32, promised to be accurate in the tail."""
    y = x.float()
    return (0.5 * y * (1 + torch.erf(y * forms.ROOT_HALF))).to(x.dtype)


@defect(
    Kind.TAIL,
    report="tenstorrent/tt-metal#56490",
    rejected_by={"invariants": "not monotone", "accuracy": "break"},
    unseen_because="a factor of 7 out there is less than 2e-4",
)
def bump_in_the_tail(x: Tensor) -> Tensor:
    """Between -4.6 and -4.4 seven times too large: the tail is not monotone."""
    y = forms.erf(x)
    return torch.where((x > -4.6) & (x < -4.4), 7 * y, y)
