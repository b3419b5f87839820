"""Elementwise kernels that are all right, each in its own way."""

from __future__ import annotations

import torch
from torch import Tensor

from gelu_verify.selftest.entry import sound
from reference_kernels.sound import forms


@sound(contract="faithful", formats=("fp32", "bf16", "fp16"))
def one_rounding(x: Tensor) -> Tensor:
    """Computes in float64 and rounds once."""
    return forms.erf(x)


@sound()
def textbook(x: Tensor) -> Tensor:
    """0.5x(1+erf) in fp32: loses what the default contract permits."""
    y = x.float()
    return (0.5 * y * (1 + torch.erf(y * forms.ROOT_HALF))).to(x.dtype)
