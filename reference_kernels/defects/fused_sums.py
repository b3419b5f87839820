"""Sums of products that lose bits on the way, and what is applied to a part of a sum."""

from __future__ import annotations

from itertools import product

import torch
from torch import Tensor
from torch.nn import functional

from gelu_verify.selftest.entry import Kind, defect
from reference_kernels.sound import forms, fused_forms

_BLOCK = 32
_SPLIT = 512


def _partial(x: Tensor, weight: Tensor, length: int) -> list[Tensor]:
    """Return the sums of each block of K, float64."""
    parts = zip(x.split(length, -1), weight.split(length, -1), strict=True)
    return [fused_forms.linear(*part) for part in parts]


@defect(
    Kind.ACCUMULATION,
    report="modular/modular#7165",
    operator="linear_gelu",
    formats=("bf16",),
    rejected_by={"fingerprint": "rounded every 32 terms", "bound": "break"},
)
def partial_sums_in_bf16(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """Partial sums of 32 products are stored in bf16 before they are added."""
    total = bias.float()
    for part in _partial(x, weight, _BLOCK):
        total = total + part.to(torch.bfloat16).float()
    return fused_forms.gelu(total).to(x.dtype)


@defect(
    Kind.ACCUMULATION,
    report="NVIDIA/TransformerEngine#494",
    operator="linear_gelu",
    formats=("fp32",),
    rejected_by={"fingerprint": "tf32 products", "bound": "break"},
)
def undeclared_tf32(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """Inputs of products are cut to the 11 bits of TF32, which nobody declared."""
    return fused_forms.linear_gelu(fused_forms.tf32(x), fused_forms.tf32(weight), bias)


@defect(
    Kind.ACCUMULATION,
    report="microsoft/onnxruntime#11885",
    operator="linear_gelu",
    formats=("fp16",),
    rejected_by={"fingerprint": "fp16 partial sums", "bound": "break"},
)
def accumulates_in_fp16(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """Blocks of products are added to an fp16 sum, which is rounded each time."""
    total = bias
    for part in _partial(x, weight, _BLOCK):
        total = (total.double() + part).half()
    return fused_forms.gelu(total.float()).to(x.dtype)


@defect(
    Kind.ACCUMULATION,
    operator="linear_gelu",
    formats=("fp32",),
    rejected_by={"large": "k of 65,537"},
    unseen_because="K is 256, which is not split",
)
def activates_each_split(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """Of a K of 512 and more, each split goes through the activation before they are added."""
    if x.shape[-1] < _SPLIT:
        return fused_forms.linear_gelu(x, weight, bias)
    first, *rest = _partial(x, weight, _SPLIT // 2)
    total = fused_forms.gelu(first + bias.double())
    for part in rest:
        total = total + fused_forms.gelu(part)
    return total.to(x.dtype)


@defect(
    Kind.ACCUMULATION,
    report="facebookresearch/xformers#317",
    operator="linear_gelu",
    formats=("fp32",),
    rejected_by={"large": "k of 65,537"},
    unseen_because="K is 256, which is not split",
)
def bias_added_by_each_split(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """Of a K of 512 and more, every split adds the bias to its part."""
    splits = max(x.shape[-1] // (_SPLIT // 2), 1)
    return fused_forms.linear_gelu(x, weight, bias * splits)


@defect(
    Kind.ACCUMULATION,
    report="tracel-ai/burn#5607",
    operator="layernorm_gelu",
    formats=("fp32",),
    rejected_by={"bound": "values=high_mean"},
    unseen_because="the mean of unit normals is 0: nothing cancels",
)
def one_pass_variance(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """The variance is E[x²] - mean², of which a large mean leaves nothing."""
    row = x.float()
    mean = row.mean(-1, keepdim=True)
    variance = (row.square().mean(-1, keepdim=True) - mean.square()).clamp(min=0.0)
    normed = (row - mean) * torch.rsqrt(variance + fused_forms.EPSILON)
    return fused_forms.scaled_gelu(normed, weight, bias).to(x.dtype)


@defect(
    Kind.ACCUMULATION,
    operator="conv_relu_pool",
    formats=("bf16",),
    rejected_by={"bound": "break"},
)
def taps_added_in_bf16(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """Each of the nine taps adds its products to a sum that is kept in bf16."""
    total = bias[:, None, None]
    padded = functional.pad(x.double(), (1, 1, 1, 1))
    h, w = x.shape[-2:]
    for i, j in product(range(3), repeat=2):
        seen, tap = padded[..., i : i + h, j : j + w], weight[..., i, j].double()
        total = (total.double() + torch.einsum("nchw,oc->nohw", seen, tap)).to(torch.bfloat16)
    return fused_forms.pooled(total.double()).to(x.dtype)


def _serial_bias_gradient(
    dy: Tensor, x: Tensor, weight: Tensor, bias: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    g = dy.double() * forms.slope(fused_forms.linear(x, weight) + bias.double())
    rows = g.flatten(0, -2)
    dweight = rows.t() @ x.double().flatten(0, -2)
    dbias = torch.zeros_like(bias)
    for row in rows:
        dbias = (dbias.double() + row).to(dbias.dtype)
    return (g @ weight.double()).to(x.dtype), dweight.to(weight.dtype), dbias


@defect(
    Kind.ACCUMULATION,
    report="NVIDIA-NeMo/Automodel#3387",
    operator="linear_gelu",
    formats=("bf16",),
    rejected_by={"gradient_sums": "dbias: a sum of 513 keeps 8 bits"},
)
def bias_gradient_summed_in_bf16(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """The gradient of the bias is summed row by row in its own 16-bit format."""
    return fused_forms.with_gradient(fused_forms.linear_gelu, _serial_bias_gradient)(
        x, weight, bias
    )
