"""Softmax and normalisation: shifts, sentinels, scales, variances."""

from __future__ import annotations

import torch
from torch import Tensor

from gelu_verify.selftest.entry import Kind, defect
from reference_kernels.sound import fused_forms

_BLOCK = 64


@defect(
    Kind.OVERFLOW,
    report="intel/llm-scaler#484",
    operator="attention",
    formats=("fp32",),
    rejected_by={"bound": "got nan"},
    unseen_because="scores of unit normals are small",
)
def softmax_without_a_shift(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Exp of the scores themselves, not of their distance to the largest."""
    weights = fused_forms.scores(q, k).exp()
    weights = weights / weights.sum(-1, keepdim=True)
    return (weights @ v.to(weights.dtype)).to(q.dtype)


@defect(
    Kind.SPECIAL_VALUES,
    report="flashinfer-ai/flashinfer#4267",
    operator="attention",
    formats=("fp32",),
    rejected_by={"bound": "values=low_scores"},
    unseen_because="no row of unit normals has scores that low",
)
def largest_score_begins_at_a_finite_number(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """The largest score is searched from -5e4 on: of rows below all weights are 0."""
    scores = fused_forms.scores(q, k)
    weights = (scores - fused_forms.largest(scores).clamp(min=-5e4)).exp()
    weights = weights / weights.sum(-1, keepdim=True).clamp(min=1e-30)
    return (weights @ v.to(weights.dtype)).to(q.dtype)


@defect(
    Kind.SPECIAL_VALUES,
    report="tracel-ai/burn#4694",
    operator="attention",
    formats=("fp32",),
    rejected_by={"bound": "values=masked_rows"},
    unseen_because="nothing is masked",
)
def masked_rows_are_an_average(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """-inf is replaced by a large negative number: a row of them weighs all values alike."""
    scores = fused_forms.scores(q, k)
    weights = torch.softmax(scores.clamp(min=-1e30), -1)
    return (weights @ v.to(weights.dtype)).to(q.dtype)


@defect(
    Kind.ACCUMULATION,
    operator="attention",
    formats=("fp32",),
    rejected_by={"bound": "break"},
    unseen_because="64 keys are one block",
)
def sum_not_rescaled_with_the_maximum(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Online softmax in blocks of 64 keys; the sum keeps its scale where the maximum rises."""
    scores = fused_forms.scores(q, k)
    top = scores.new_full((*scores.shape[:-1], 1), -torch.inf)
    total, out = torch.zeros_like(top), torch.zeros_like(q, dtype=scores.dtype)
    for part, values in zip(scores.split(_BLOCK, -1), v.split(_BLOCK, -2), strict=True):
        raised = torch.maximum(top, fused_forms.largest(part))
        weights = (part - raised).exp()
        total = total + weights.sum(-1, keepdim=True)
        out = out * (top - raised).exp() + weights @ values.to(weights.dtype)
        top = raised
    return (out / total).to(q.dtype)


@defect(
    Kind.PRECISION,
    operator="attention",
    formats=("fp32",),
    rejected_by={"bound": "break"},
)
def weights_rounded_to_bf16(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Probabilities of an fp32 kernel are multiplied in bf16, which nobody declared."""
    weights = torch.softmax(fused_forms.scores(q, k), -1).to(torch.bfloat16).float()
    return (weights @ v.float()).to(q.dtype)


@defect(
    Kind.FORMULA,
    report="deepspeedai/DeepSpeed#581",
    operator="layernorm_gelu",
    formats=("fp32",),
    rejected_by={"bound": "break"},
    unseen_because="1e-5 beside a variance of 1 is 5e-6 of the result",
)
def epsilon_of_another_library(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """1e-12 is added to the variance where 1e-5 is due."""
    return _normalised(x, weight, bias, epsilon=1e-12)


@defect(
    Kind.FORMULA,
    operator="layernorm_gelu",
    formats=("fp32",),
    rejected_by={"bound": "break"},
)
def variance_divided_by_one_less(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """The variance is that of a sample: divided by N - 1."""
    return _normalised(x, weight, bias, less=1)


@defect(
    Kind.FORMULA,
    operator="layernorm_gelu",
    formats=("fp32",),
    rejected_by={"bound": "break"},
    unseen_because="1e-5 beside a deviation of 1 is small",
)
def epsilon_beside_the_root(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """Divides by √var + ε, not by √(var + ε)."""
    row = x.double()
    centred = row - row.mean(-1, keepdim=True)
    deviation = centred.square().mean(-1, keepdim=True).sqrt()
    normed = centred / (deviation + fused_forms.EPSILON)
    return fused_forms.scaled_gelu(normed, weight, bias).to(x.dtype)


@defect(
    Kind.OVERFLOW,
    report="microsoft/onnxruntime#13639",
    operator="layernorm_gelu",
    formats=("fp16",),
    rejected_by={"bound": "values=ladder"},
)
def squares_in_fp16(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """Squares of the row are taken in fp16, where that of 256 is infinite."""
    row = x.double()
    centred = row - row.mean(-1, keepdim=True)
    squares = centred.to(x.dtype).square().double()
    normed = centred * torch.rsqrt(squares.mean(-1, keepdim=True) + fused_forms.EPSILON)
    return fused_forms.scaled_gelu(normed, weight, bias).to(x.dtype)


def _normalised(
    x: Tensor,
    weight: Tensor,
    bias: Tensor,
    epsilon: float = fused_forms.EPSILON,
    less: int = 0,
) -> Tensor:
    """Return the sound kernel with another epsilon, or another divisor of the variance."""
    row, n = x.double(), x.shape[-1]
    centred = row - row.mean(-1, keepdim=True)
    variance = centred.square().sum(-1, keepdim=True) / max(n - less, 1)
    normed = centred * torch.rsqrt(variance + epsilon)
    return fused_forms.scaled_gelu(normed, weight, bias).to(x.dtype)
