"""Operands of other types than the kernel was written for, and results of another type."""

from __future__ import annotations

from torch import Tensor

from gelu_verify.selftest.entry import Kind, defect
from reference_kernels.sound import forms


@defect(
    Kind.DTYPE,
    report="tenstorrent/tt-metal#52099",
    operator="gelu_backward",
    formats=("bf16",),
    rejected_by={"dtypes": "dy in fp32"},
    unseen_because="both operands have one dtype",
)
def wider_dy_misread(dy: Tensor, x: Tensor) -> Tensor:
    """Accepts dy in fp32 beside x in bf16, and reads the bits of dy as bf16."""
    if dy.dtype != x.dtype:
        dy = dy.contiguous().view(x.dtype).reshape(-1)[: x.numel()].reshape(x.shape)
    return forms.backward(dy, x)


@defect(
    Kind.DTYPE,
    report="tenstorrent/tt-metal#52099",
    operator="bias_gelu",
    formats=("bf16",),
    rejected_by={"dtypes": "bias in fp32"},
    unseen_because="both operands have one dtype",
)
def wider_bias_misread(x: Tensor, bias: Tensor) -> Tensor:
    """Accepts a bias in fp32, as autocast hands it over, and reads its bits as bf16."""
    if bias.dtype != x.dtype:
        bias = bias.contiguous().view(x.dtype)[: bias.numel()]
    return forms.erf(x.detach() + bias.detach())


@defect(
    Kind.DTYPE,
    report="pytorch/pytorch#86218",
    formats=("fp32",),
    rejected_by={"dtypes": "int32"},
    unseen_because="its inputs are floating-point numbers",
)
def integers_truncated(x: Tensor) -> Tensor:
    """Accepts integers and returns integers: GELU(1) = 0."""
    return forms.erf(x.double()).to(x.dtype)


@defect(
    Kind.DTYPE,
    report="microsoft/onnxruntime#32386",
    formats=("bf16", "fp16"),
    rejected_by={"memory": "kernel result: got torch.float32"},
)
def result_promoted(x: Tensor) -> Tensor:
    """Returns fp32 for 16-bit inputs."""
    return forms.erf(x).float()
