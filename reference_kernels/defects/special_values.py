"""Infinities, NaN, signed zeros, subnormal and huge numbers."""

from __future__ import annotations

import torch
from torch import Tensor

from gelu_verify.selftest.entry import Kind, defect
from reference_kernels.sound import forms


@defect(
    Kind.SPECIAL_VALUES,
    report="pytorch/pytorch#194278",
    contract="tail_accurate",
    rejected_by={"special_values": "x = -inf: got nan"},
    unseen_because="unit normals hold no infinity",
)
def nan_at_minus_infinity(x: Tensor) -> Tensor:
    """-inf meets a factor that is exactly 0."""
    return torch.where(x == -torch.inf, torch.nan, forms.erf(x))


@defect(
    Kind.SPECIAL_VALUES,
    report="pytorch/pytorch#185770",
    rejected_by={"special_values": "x = inf: got nan"},
    unseen_because="unit normals hold no infinity",
)
def nan_at_infinity_in_vectors(x: Tensor) -> Tensor:
    """+inf gives NaN, but only where there are enough elements for the vector loop."""
    y = forms.erf(x)
    return y if x.numel() < 8 else torch.where(x == torch.inf, torch.nan, y)


@defect(
    Kind.SPECIAL_VALUES,
    report="tracel-ai/burn#5609",
    rejected_by={"special_values": "x = nan: got "},
    unseen_because="unit normals hold no NaN",
)
def nan_becomes_the_clamp_bound(x: Tensor) -> Tensor:
    """A clamp that returns the other operand turns NaN into its lower bound."""
    return forms.erf(torch.where(torch.isnan(x), -6.0, x))
