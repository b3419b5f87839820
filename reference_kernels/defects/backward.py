"""The derivative: of another formula, with a wrong sign, cut off, divided by x."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

from gelu_verify.selftest.entry import Kind, defect
from reference_kernels.sound import forms


def _slope_tanh(x: Tensor) -> Tensor:
    """Return the derivative of the tanh formula, float64."""
    y = x.double().clamp(-60.0, 60.0)
    c, cubic = forms.ROOT_TWO_OVER_PI, 0.044715
    gate = torch.sigmoid(2 * c * (y + cubic * y**3))
    return gate + y * gate * (1 - gate) * 2 * c * (1 + 3 * cubic * y * y)


@defect(
    Kind.BACKWARD,
    report="harvard-edge/cs249r_book#1399",
    operator="gelu_backward",
    rejected_by={"formula": "declared erf, computes tanh"},
)
def derivative_of_tanh(dy: Tensor, x: Tensor) -> Tensor:
    """The gradient is that of the tanh formula, the forward's formula is erf."""
    return (dy.double() * _slope_tanh(x)).to(x.dtype)


class _OtherBackward(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        ctx.save_for_backward(x)
        return forms.erf(x)

    @staticmethod
    def backward(ctx: Any, dy: Tensor) -> Tensor:
        (x,) = ctx.saved_tensors
        return (dy.double() * _slope_tanh(x)).to(x.dtype)


@defect(
    Kind.BACKWARD,
    report="harvard-edge/cs249r_book#1399",
    formats=("fp32",),
    gradient="only",
    rejected_by={"formula": "declared erf, computes tanh"},
)
def autograd_of_another_formula(x: Tensor) -> Tensor:
    """A forward of one formula with the backward of another: seen only through autograd."""
    return _OtherBackward.apply(x)


@defect(
    Kind.BACKWARD,
    report="tenstorrent/tt-metal#35971",
    operator="gelu_backward",
    rejected_by={"accuracy": "opposite_sign"},
    unseen_because="the derivative is 4e-4 there, and few inputs meet the zone",
)
def sign_flips_in_a_zone(dy: Tensor, x: Tensor) -> Tensor:
    """Between -4.2 and -4 the derivative has the wrong sign."""
    y = forms.backward(dy, x)
    return torch.where((x > -4.2) & (x < -4.0), -y, y)


@defect(
    Kind.BACKWARD,
    report="tenstorrent/tt-metal#35971",
    operator="gelu_backward",
    formats=("fp32",),
    rejected_by={"accuracy": "break"},
    unseen_because="GELU'(4) - 1 is 5e-4",
)
def derivative_is_one_too_early(dy: Tensor, x: Tensor) -> Tensor:
    """Returns dy itself from 4 on, where the derivative is 1.0005."""
    return torch.where(x > 4.0, dy, forms.backward(dy, x))


@defect(
    Kind.BACKWARD,
    report="tenstorrent/tt-metal#54883",
    operator="gelu_backward",
    formats=("fp32",),
    rejected_by={"accuracy": "break"},
    unseen_because="the series is off by 2e-5 at -3, and by less below",
)
def short_asymptotic_series(dy: Tensor, x: Tensor) -> Tensor:
    """Below -3 four terms of an asymptotic series stand for Φ: right in bf16 alone."""
    y = x.double().clamp(-60.0, -1.0)
    density = torch.exp(-0.5 * y * y) / math.sqrt(2 * math.pi)
    square = 1 / (y * y)
    phi = -density / y * (1 - square * (1 - 3 * square * (1 - 5 * square)))
    series = (dy.double() * (phi + y * density)).to(x.dtype)
    return torch.where((x < -3.0) & (x > -5.0), series, forms.backward(dy, x))


@defect(
    Kind.BACKWARD,
    report="PaddlePaddle/Paddle#14857",
    operator="gelu_backward",
    formats=("fp32",),
    rejected_by={"special_values": "x = 0.0: got nan", "accuracy": "nan"},
    unseen_because="no unit normal of fp32 is exactly 0",
)
def divides_by_x(dy: Tensor, x: Tensor) -> Tensor:
    """Takes Φ as out/x, which is 0/0 at 0."""
    return torch.where(x == 0, torch.nan, forms.backward(dy, x))


@defect(
    Kind.BACKWARD,
    report="tensorflow/tensorflow#47724",
    operator="gelu_backward",
    formula="tanh",
    rejected_by={"accuracy": "nan_for_number", "invariants": "non-finite"},
    unseen_because="unit normals do not reach 1e19",
)
def square_overflows_in_the_gradient(dy: Tensor, x: Tensor) -> Tensor:
    """1 + 3·0.044715·x² overflows and meets the factor 1 - tanh² = 0."""
    y = (dy.double() * _slope_tanh(x)).to(x.dtype)
    return torch.where(torch.isinf(x.float() * x.float()) & torch.isfinite(x), torch.nan, y)


@defect(
    Kind.BACKWARD,
    report="intel/torch-xpu-ops#4753",
    operator="gelu_backward",
    formats=("fp32",),
    contract="tail_accurate",
    rejected_by={"accuracy": "break"},
    unseen_because="what is lost is below 1e-6",
)
def derivative_by_one_plus_erf(dy: Tensor, x: Tensor) -> Tensor:
    """Φ as (1 + erf)/2 in fp32: the derivative loses the left tail as the value does."""
    phi = 0.5 * (1 + torch.erf(x * forms.ROOT_HALF))
    density = torch.exp(-0.5 * x * x) / math.sqrt(2 * math.pi)
    return dy * torch.where(torch.isinf(x), phi, phi + x * density)


@defect(
    Kind.BACKWARD,
    report="pytorch/functorch#640",
    operator="gelu_backward",
    rejected_by={"routes": "expanded"},
    unseen_because="dy is contiguous there, in training it often is an expanded scalar",
)
def expanded_dy_misread(dy: Tensor, x: Tensor) -> Tensor:
    """Reads a dy of stride 0 as if its elements lay one behind the other."""
    if 0 in dy.stride() and dy.numel() > 1:
        storage = torch.as_strided(dy, (dy.untyped_storage().nbytes() // dy.element_size(),), (1,))
        repeats = -(-dy.numel() // storage.numel())
        dy = storage.repeat(repeats)[: dy.numel()].reshape(dy.shape)
    return forms.backward(dy, x)
