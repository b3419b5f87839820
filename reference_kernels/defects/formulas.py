"""Another function than the declared one, everywhere or on some routes and sizes."""

from __future__ import annotations

import torch
from torch import Tensor

from gelu_verify.selftest.entry import Kind, defect
from reference_kernels.sound import forms

_NEAR = "the formulas differ by 4.7e-4 at most"


@defect(
    Kind.FORMULA,
    report="pytorch/pytorch#104061",
    rejected_by={"formula": "declared erf, computes tanh"},
    unseen_because=_NEAR,
)
def tanh_for_erf(x: Tensor) -> Tensor:
    """Computes the tanh formula where the exact one is claimed."""
    return forms.tanh(x)


@defect(
    Kind.FORMULA,
    report="apple/coremltools#2863",
    formula="tanh",
    rejected_by={"formula": "declared tanh, computes erf"},
    unseen_because=_NEAR,
)
def keyword_ignored(x: Tensor, approximate: str = "tanh") -> Tensor:
    """Takes ``approximate`` and computes the exact formula whatever it says."""
    return forms.erf(x)


@defect(
    Kind.FORMULA,
    report="ml-explore/mlx#744",
    formula="sigmoid",
    rejected_by={"formula": "computes x·σ(1.773"},
)
def other_constant_in_the_sigmoid(x: Tensor) -> Tensor:
    """1.773 in place of the published 1.702."""
    wide = x.double().clamp(min=-200.0)
    return torch.copysign(wide * torch.sigmoid(1.773 * wide), x.double()).to(x.dtype)


@defect(
    Kind.FORMULA,
    report="mindspore-lab/mindone#225",
    formula="sigmoid",
    rejected_by={"formula": "declared sigmoid, computes erf"},
)
def plain_for_quick(x: Tensor) -> Tensor:
    """Computes the exact GELU where weights were trained with x·σ(1.702x)."""
    return forms.erf(x)


@defect(
    Kind.FORMULA,
    report="karpathy/llm.c#653",
    formats=("fp32",),
    rejected_by={"accuracy": "break"},
    unseen_because="the constant is right to four digits",
)
def short_constant(x: Tensor) -> Tensor:
    """0.7071 in place of √½, which is enough in 16 bits and not in fp32."""
    wide = x.double().clamp(min=-200.0)
    return torch.copysign(0.5 * wide * torch.erfc(-wide * 0.7071), x.double()).to(x.dtype)


@defect(
    Kind.FORMULA,
    report="PaddlePaddle/Paddle#79074",
    rejected_by={"routes": "short (7)"},
    unseen_because="one size is tried, on one side of the switch, and " + _NEAR,
)
def formula_by_size(x: Tensor) -> Tensor:
    """Small tensors take another route, which computes the tanh formula."""
    return forms.tanh(x) if x.numel() < 64 else forms.erf(x)


@defect(
    Kind.FORMULA,
    report="NVIDIA/TensorRT-LLM#17693",
    rejected_by={"routes": "strided"},
    unseen_because="the input is contiguous, and " + _NEAR,
)
def formula_by_route(x: Tensor) -> Tensor:
    """Contiguous tensors get the erf formula, others the tanh formula."""
    return forms.erf(x) if x.is_contiguous() else forms.tanh(x)


@defect(
    Kind.FORMULA,
    report="google/gemma_pytorch#33",
    operator="geglu",
    formats=("fp32",),
    rejected_by={"formula": "declared erf, computes tanh"},
)
def tanh_in_the_gate(gate: Tensor, up: Tensor) -> Tensor:
    """The gate's activation is the tanh formula, where the port it came from has the exact one."""
    value = forms.tanh(gate.double())
    return (value * up.double()).to(gate.dtype)


@defect(
    Kind.FORMULA,
    report="ooples/AiDotNet.Tensors#46",
    operator="geglu",
    formats=("fp32",),
    rejected_by={"accuracy": "break", "bound": "break"},
)
def halves_swapped(gate: Tensor, up: Tensor) -> Tensor:
    """The activation is put on the other half."""
    return forms.geglu(up, gate)


@defect(
    Kind.FORMULA,
    report="ooples/AiDotNet.Tensors#46",
    operator="geglu",
    formats=("fp32",),
    rejected_by={"routes": "single"},
    unseen_because="the width it tries is a multiple of 8",
)
def halves_swapped_in_the_remainder(gate: Tensor, up: Tensor) -> Tensor:
    """The loop over what is left of a width that is no multiple of 8 takes the other half."""
    y = forms.geglu(gate, up)
    rest = gate.shape[-1] % 8 if gate.dim() else 0
    if rest:
        y[..., -rest:] = forms.geglu(up[..., -rest:], gate[..., -rest:])
    return y
