"""Infinities, NaN, signed zeros, subnormal and huge numbers."""

from __future__ import annotations

import torch
from torch import Tensor

from gelu_verify.selftest.entry import Kind, defect
from reference_kernels.sound import forms

_NO_INFINITY = "unit normals hold no infinity"
_NO_NAN = "unit normals hold no NaN"


@defect(
    Kind.SPECIAL_VALUES,
    report="pytorch/pytorch#194278",
    contract="tail_accurate",
    rejected_by={"special_values": "x = -inf: got nan"},
    unseen_because=_NO_INFINITY,
)
def nan_at_minus_infinity(x: Tensor) -> Tensor:
    """-inf meets a factor that is exactly 0."""
    return torch.where(x == -torch.inf, torch.nan, forms.erf(x))


@defect(
    Kind.SPECIAL_VALUES,
    report="pytorch/executorch#2046",
    contract="tail_accurate",
    rejected_by={"special_values": "x = -inf: got nan"},
    unseen_because="its test knew only the positive infinity",
)
def negative_nan_at_minus_infinity(x: Tensor) -> Tensor:
    """-inf gives a NaN whose sign bit is set, which prints as -nan and sorts below everything."""
    nan = torch.copysign(torch.full_like(x, torch.nan), torch.full_like(x, -1.0))
    return torch.where(x == -torch.inf, nan, forms.erf(x))


@defect(
    Kind.SPECIAL_VALUES,
    report="pytorch/pytorch#185770",
    rejected_by={"special_values": "x = inf: got nan"},
    unseen_because=_NO_INFINITY,
)
def nan_at_infinity_in_vectors(x: Tensor) -> Tensor:
    """+inf gives NaN, but only where there are enough elements for the vector loop."""
    y = forms.erf(x)
    return y if x.numel() < 8 else torch.where(x == torch.inf, torch.nan, y)


@defect(
    Kind.SPECIAL_VALUES,
    report="tracel-ai/burn#5609",
    rejected_by={"special_values": "x = nan: got "},
    unseen_because=_NO_NAN,
)
def nan_becomes_the_clamp_bound(x: Tensor) -> Tensor:
    """A clamp that returns the other operand turns NaN into its lower bound."""
    return forms.erf(torch.where(torch.isnan(x), -6.0, x))


@defect(
    Kind.SPECIAL_VALUES,
    report="ooples/AiDotNet.Tensors#594",
    rejected_by={"special_values": "x = nan: got 0"},
    unseen_because=_NO_NAN,
)
def nan_dropped_in_the_remainder(x: Tensor) -> Tensor:
    """Vector lanes keep NaN; the scalar loop over the last elements computes max(NaN, x) as 0."""
    y = forms.erf(x)
    rest = y.numel() % 8
    if x.dim() == 1 and rest:
        y[-rest:] = torch.where(torch.isnan(y[-rest:]), 0.0, y[-rest:])
    return y


@defect(
    Kind.SPECIAL_VALUES,
    report="apache/tvm#19579",
    operator="bias_gelu",
    formats=("fp32",),
    rejected_by={"accuracy": "number_for_nan"},
    unseen_because=_NO_NAN,
)
def nan_of_the_bias_dropped(x: Tensor, bias: Tensor) -> Tensor:
    """Keeps a NaN of x, drops one of the bias: which operand is NaN decides."""
    return forms.bias(x, torch.where(torch.isnan(bias), 0.0, bias))


@defect(
    Kind.SPECIAL_VALUES,
    report="tenstorrent/tt-metal#52407",
    rejected_by={"special_values": "x = 0.0: got -0.0001", "invariants": "sign of the result"},
    unseen_because="1e-4 is a tenth of the tolerance",
)
def table_is_not_zero_at_zero(x: Tensor) -> Tensor:
    """A table's entry next to 0 is -1.04e-4, so that small positive inputs come out negative."""
    near = x.abs() < 2.0**-13
    return torch.where(near, -1.04e-4, forms.erf(x).double()).to(x.dtype)


@defect(
    Kind.SPECIAL_VALUES,
    report="flashinfer-ai/flashinfer#4267",
    rejected_by={"accuracy": "break"},
    unseen_because="no unit normal is near 5e4",
)
def finite_sentinel(x: Tensor) -> Tensor:
    """±5e4 stands in for the infinities, and for all that is beyond it."""
    return forms.erf(torch.where(x.abs() > 5e4, torch.copysign(torch.full_like(x, 5e4), x), x))


@defect(
    Kind.SPECIAL_VALUES,
    report="tensorflow/tensorflow#124773",
    formats=("fp32",),
    rejected_by={"accuracy": "nan_for_number", "invariants": "non-finite"},
    unseen_because="no unit normal is near 1e19",
)
def nan_of_huge_numbers(x: Tensor) -> Tensor:
    """A rational erf in x² is inf/inf where the square overflows."""
    square = x * x
    return torch.where(torch.isinf(square) & torch.isfinite(x), torch.nan, forms.erf(x))


@defect(
    Kind.SPECIAL_VALUES,
    report="pytorch/pytorch#185770",
    rejected_by={"accuracy": "infinity"},
    unseen_because="no unit normal is near the largest number of a format",
)
def largest_number_overflows(x: Tensor) -> Tensor:
    """0.5·(x + x·erf) overflows where x is above half of the largest number."""
    y = forms.erf(x)
    return torch.where(x > torch.finfo(x.dtype).max / 2, torch.inf, y)


@defect(
    Kind.SPECIAL_VALUES,
    report="data-apis/array-api-tests#42",
    contract="tail_accurate",
    rejected_by={"accuracy": "flushed"},
    unseen_because="what is lost is below 1e-38",
)
def flushes_undeclared(x: Tensor) -> Tensor:
    """Subnormal inputs and results become 0, under a contract that keeps them."""
    tiny = torch.finfo(x.dtype).smallest_normal
    y = forms.erf(torch.where(x.abs() < tiny, x * 0, x))
    return torch.where(y.abs() < tiny, y * 0, y)


@defect(
    Kind.SPECIAL_VALUES,
    report="pytorch/pytorch#185770",
    contract="tail_accurate",
    rejected_by={"special_values": "x = -0.0: got 0.0"},
    unseen_because="0 equals -0 in every comparison of values",
)
def loses_the_sign_of_zero(x: Tensor) -> Tensor:
    """-0 gives +0, under a contract that keeps signs."""
    return forms.erf(x) + 0.0
