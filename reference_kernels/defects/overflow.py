"""An intermediate overflows or leaves the domain of a fit; the result is an ordinary number."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from gelu_verify.selftest.entry import Kind, defect
from reference_kernels.sound import forms

_UNIT_NORMALS_ARE_SMALL = "131,072 unit normals do not reach 6"


def _argument(x: Tensor) -> Tensor:
    return forms.ROOT_TWO_OVER_PI * (x + 0.044715 * x * x * x)


@defect(
    Kind.OVERFLOW,
    report="pytorch/pytorch#186278",
    formula="tanh",
    rejected_by={"accuracy": "break", "invariants": "non-finite"},
    unseen_because=_UNIT_NORMALS_ARE_SMALL,
)
def tanh_as_a_quotient(x: Tensor) -> Tensor:
    """(e^2u - 1)/(e^2u + 1) is inf/inf from x = 10.07 on."""
    y = x.float()
    e = torch.exp(2 * _argument(y))
    return (0.5 * y * (1 + (e - 1) / (e + 1))).to(x.dtype)


@defect(
    Kind.OVERFLOW,
    report="pytorch/executorch#22323",
    formula="tanh",
    rejected_by={"accuracy": "break", "invariants": "non-finite"},
    unseen_because=_UNIT_NORMALS_ARE_SMALL,
)
def tanh_of_two_exponentials(x: Tensor) -> Tensor:
    """(e^u - e^-u)/(e^u + e^-u) is NaN on both sides, from |x| = 13.2 on."""
    y = x.float()
    up, down = torch.exp(_argument(y)), torch.exp(-_argument(y))
    return (0.5 * y * (1 + (up - down) / (up + down))).to(x.dtype)


class _HalfCube(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        ctx.save_for_backward(x)
        return forms.tanh(x)

    @staticmethod
    def backward(ctx: Any, dy: Tensor) -> Tensor:
        (x,) = ctx.saved_tensors
        u = forms.ROOT_TWO_OVER_PI * (x + 0.044715 * x * x * x).double()
        gate, slope = torch.tanh(u), 1 + 3 * 0.044715 * (x * x).double()
        inner = 0.5 * x.double() * (1 - gate * gate) * forms.ROOT_TWO_OVER_PI * slope
        return (dy.double() * (0.5 * (1 + gate) + inner)).to(x.dtype)


@defect(
    Kind.OVERFLOW,
    report="facebookresearch/fairseq#2235",
    formula="tanh",
    formats=("fp16",),
    gradient="only",
    rejected_by={"invariants": "non-finite"},
    unseen_because="unit normals do not reach 256",
)
def square_in_fp16(x: Tensor) -> Tensor:
    """x² overflows in fp16 from 256 on; the forward hides it, the gradient's inf·0 does not."""
    return _HalfCube.apply(x)


@defect(
    Kind.OVERFLOW,
    report="Tencent/ncnn#1284",
    formula="sigmoid",
    formats=("fp32",),
    rejected_by={"accuracy": "break", "invariants": "non-finite"},
    unseen_because=_UNIT_NORMALS_ARE_SMALL,
)
def newton_step_of_a_reciprocal(x: Tensor) -> Tensor:
    """1/d by one Newton step, r(2 - dr), is 0·inf where d = 1 + e^-y has overflowed."""
    d = 1 + torch.exp(-1.702 * x)
    r = 1 / d
    return x * (r * (2 - d * r))


@defect(
    Kind.OVERFLOW,
    report="clab/dynet#1525",
    formula="sigmoid",
    formats=("fp32",),
    rejected_by={"accuracy": "break", "formula": ""},
    unseen_because=_UNIT_NORMALS_ARE_SMALL,
)
def sigmoid_is_half_when_large(x: Tensor) -> Tensor:
    """Beyond an argument of 8 the packet route gives σ = 0.5."""
    return torch.where(1.702 * x > 8.0, 0.5 * x, forms.sigmoid(x))


@defect(
    Kind.OVERFLOW,
    report="intel/llm-scaler#484",
    operator="geglu",
    formula="tanh",
    formats=("fp32",),
    rejected_by={"accuracy": "break", "bound": "break"},
    unseen_because=_UNIT_NORMALS_ARE_SMALL,
)
def gate_overflows(gate: Tensor, up: Tensor) -> Tensor:
    """The gate's exponential overflows from 10 on; halves of a model stay below, the whole not."""
    y = gate.detach().float()
    e = torch.exp(2 * _argument(y))
    return (0.5 * y * (1 + (e - 1) / (e + 1)) * up.detach().float()).to(gate.dtype)


@defect(
    Kind.OVERFLOW,
    report="ooples/AiDotNet.Tensors#594",
    formats=("fp32",),
    rejected_by={"accuracy": "nan_for_number", "invariants": "non-finite"},
    unseen_because=_UNIT_NORMALS_ARE_SMALL,
)
def nan_in_vector_lanes(x: Tensor) -> Tensor:
    """Beyond 21 whole vectors give NaN, the scalar remainder is right."""
    y = forms.erf(x)
    whole = x.numel() // 8 * 8
    lanes = torch.arange(x.numel(), device=x.device).reshape(x.shape) < whole
    return torch.where((x > 21.0) & torch.isfinite(x) & lanes, torch.nan, y)


@defect(
    Kind.OVERFLOW,
    report="apple/coremltools#2687",
    formats=("fp16",),
    rejected_by={"accuracy": "break", "invariants": ""},
    unseen_because=_UNIT_NORMALS_ARE_SMALL,
)
def drops_to_zero_when_large(x: Tensor) -> Tensor:
    """Past 10.4 the result is 0: ln(1 + e^x) had overflowed on the way."""
    return torch.where((x > 10.4) & torch.isfinite(x), 0.0, forms.erf(x))


@defect(
    Kind.OVERFLOW,
    report="tenstorrent/tt-metal#52178",
    rejected_by={"accuracy": "break", "invariants": ""},
    unseen_because=_UNIT_NORMALS_ARE_SMALL,
)
def fit_beyond_its_domain(x: Tensor) -> Tensor:
    """A polynomial for the gate is used on both sides of [-6, 6], where it leaves 0 and 1."""
    y = x.double()
    drift = 1e-3 * (y.abs() - 6.0).clamp(min=0.0, max=100.0)
    return torch.where(torch.isfinite(x), forms.erf(x) + y * drift, y).to(x.dtype)
