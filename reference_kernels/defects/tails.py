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
    report="tenstorrent/tt-metal#56517",
    formula="tanh",
    contract="tail_accurate",
    rejected_by={"accuracy": "collapse"},
    unseen_because="what is lost is below 1e-6",
)
def one_plus_tanh(x: Tensor) -> Tensor:
    """1 + tanh is exactly 0 below -6, where x·σ(2u) still has all its digits."""
    y = x.float()
    u = forms.ROOT_TWO_OVER_PI * (y + 0.044715 * y * y * y)
    return (0.5 * y * (1 + torch.tanh(u))).to(x.dtype)


@defect(
    Kind.TAIL,
    report="tenstorrent/tt-metal#35290",
    rejected_by={"accuracy": "break", "invariants": ""},
    unseen_because="a constant of 3e-5 is below the tolerance",
)
def constant_term_swamps_tiny_inputs(x: Tensor) -> Tensor:
    """The polynomial around 0 has a constant term of 2.98e-5."""
    y = forms.erf(x).double()
    return torch.where(x.abs() < 0.01, y + 2.98e-5, y).to(x.dtype)


@defect(
    Kind.TAIL,
    report="tenstorrent/tt-metal#52178",
    rejected_by={"invariants": "flat where the exact value moves", "accuracy": "break"},
    unseen_because="the constant is 4e-4, below the tolerance",
)
def clamps_into_its_domain(x: Tensor) -> Tensor:
    """Inputs below -3.7 are clamped to it, as the fit ends there: a constant from then on."""
    return forms.erf(torch.where(x < -3.7, -3.7, x))


@defect(
    Kind.TAIL,
    report="tenstorrent/tt-metal#5578",
    rejected_by={"accuracy": "collapse"},
    unseen_because="the results that became 0 are below 6e-4",
)
def zero_too_early(x: Tensor) -> Tensor:
    """0 from -3.6 on, where the exact value is -5.7e-4."""
    return torch.where(x < -3.6, -0.0, forms.erf(x))


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


@defect(
    Kind.TAIL,
    report="microsoft/onnxruntime#1999",
    formats=("fp32",),
    rejected_by={"accuracy": "break"},
    unseen_because="x - GELU(x) is 6e-4 at the cut",
)
def identity_too_early(x: Tensor) -> Tensor:
    """Returns x itself from 3.6 on: erf's upper cut-off is not yet 1 there."""
    return torch.where(x > 3.6, x, forms.erf(x))


@defect(
    Kind.TAIL,
    report="karpathy/llm.c#721",
    formats=("bf16",),
    formula="tanh",
    contract="tail_accurate",
    rejected_by={"accuracy": "collapse"},
    unseen_because="60 of all 65,536 inputs change, by 3e-6",
)
def fast_tanh_next_to_minus_one(x: Tensor) -> Tensor:
    """An approximate tanh instruction is exactly -1 between x = -5.156 and -4.875."""
    return torch.where((x > -5.16) & (x < -4.87), -0.0, forms.tanh(x))


@defect(
    Kind.TAIL,
    report="tenstorrent/tt-metal#55714",
    formula="sigmoid",
    formats=("fp32",),
    contract="tail_accurate",
    rejected_by={"accuracy": "collapse"},
    unseen_because="the sigmoid's tail is lost below 1e-37",
)
def reciprocal_flushes(x: Tensor) -> Tensor:
    """1/(1 + e^1.702|x|) is flushed from 2^-126 on, where x times it is a normal number."""
    gate = torch.sigmoid(1.702 * x.double())
    gate = torch.where(gate < 2.0**-125, 0.0, gate)
    return torch.copysign(x.double().clamp(min=-200.0) * gate, x.double()).to(x.dtype)
