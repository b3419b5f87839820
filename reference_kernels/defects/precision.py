"""Fewer bits on the way than the format and the contract ask for."""

from __future__ import annotations

import torch
from torch import Tensor

from gelu_verify.selftest.entry import Kind, defect
from reference_kernels.sound import forms


@defect(
    Kind.PRECISION,
    report="ggml-org/llama.cpp#29252",
    formats=("fp32",),
    rejected_by={"accuracy": "break"},
    unseen_because="11 bits are enough for a relative tolerance of 1e-3",
)
def table_of_fp16(x: Tensor) -> Tensor:
    """Rounds x to fp16 and looks the result up in a table of 65,536 entries."""
    beyond = x.abs() > 10.0
    entry = forms.erf(torch.where(beyond, 0.0, x).half()).float()
    return torch.where(beyond | torch.isnan(x), forms.erf(x), torch.copysign(entry, x))


@defect(
    Kind.PRECISION,
    report="microsoft/onnxruntime#11885",
    formula="sigmoid",
    formats=("fp16", "bf16"),
    rejected_by={"accuracy": "break"},
    unseen_because="one unit of fp16 is within a relative tolerance of 1e-3",
)
def computes_in_its_format(x: Tensor) -> Tensor:
    """Every step is rounded to 16 bits: the argument, the exponential, the gate."""
    return x / (1 + torch.exp(-1.702 * x))


@defect(
    Kind.PRECISION,
    report="triton-lang/triton#11217",
    formats=("fp16", "bf16"),
    contract="correctly_rounded",
    rejected_by={"accuracy": "break correctly_rounded"},
    unseen_because="cutting off is less than one unit, and eager is no more than a half better",
)
def truncates(x: Tensor) -> Tensor:
    """Cuts the bits off that the format does not hold, where nearest is promised."""
    wide = forms.erf(x.double())
    y = wide.to(x.dtype)
    inward = torch.nextafter(y, torch.zeros_like(y))
    return torch.where(y.double().abs() > wide.abs(), inward, y)


@defect(
    Kind.PRECISION,
    report="ggml-org/llama.cpp#29252",
    operator="bias_gelu",
    formats=("fp32",),
    rejected_by={"accuracy": "break", "bound": "break"},
    unseen_because="11 bits are enough for a relative tolerance of 1e-3",
)
def sum_in_fp16(x: Tensor, bias: Tensor) -> Tensor:
    """Rounds x + bias to fp16 before the activation."""
    total = x + bias
    return forms.erf(torch.where(total.abs() < 6e4, total.half().float(), total))


@defect(
    Kind.PRECISION,
    report="EricLBuehler/mistral.rs#1867",
    operator="geglu",
    formats=("fp32",),
    rejected_by={"accuracy": "break", "bound": "break"},
    unseen_because="11 bits are enough for a relative tolerance of 1e-3",
)
def gate_kept_in_fp16(gate: Tensor, up: Tensor) -> Tensor:
    """f(gate) is kept in fp16 until it is multiplied, in a kernel of fp32."""
    value = forms.erf(gate)
    return torch.where(value.abs() < 6e4, value.half().float(), value) * up.detach()
