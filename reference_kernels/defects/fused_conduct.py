"""What a call leaves behind, takes over from another, or gives another time."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.nn import functional

from gelu_verify.selftest.entry import Kind, defect
from reference_kernels.sound import forms, fused_forms

_ONE_CALL = "it looks at the values of one call, which are right"
_buffers: dict[tuple[Any, ...], Tensor] = {}


def _buffer(name: str, like: Tensor) -> Tensor:
    """Return the buffer of a name for a shape and format, zeros when it is new."""
    key = (name, like.shape, like.dtype, like.device)
    if key not in _buffers:
        _buffers[key] = torch.zeros(like.shape, dtype=like.dtype, device=like.device)
    return _buffers[key]


@defect(
    Kind.ALIASING,
    report="NVIDIA/NeMo-Speech.cpp#28",
    operator="layernorm_gelu",
    formats=("fp32",),
    rejected_by={"aliasing": "two calls return the result in the same storage"},
    unseen_because=_ONE_CALL,
)
def result_in_a_kept_buffer(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """The result lies in a buffer that the next call of the same shape is given, too."""
    y = fused_forms.layernorm_gelu(x, weight, bias)
    return _buffer("result", y).copy_(y.detach())


@defect(
    Kind.ALIASING,
    report="Xilinx/mlir-aie#3656",
    operator="layernorm_gelu",
    formats=("fp32",),
    rejected_by={"memory": "argument x was overwritten"},
    unseen_because=_ONE_CALL,
)
def rows_centred_in_place(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """The mean is subtracted from the argument itself."""
    y = fused_forms.layernorm_gelu(x, weight, bias).detach()
    if 0 not in x.stride() and x.numel():
        x.detach().sub_(x.detach().mean(-1, keepdim=True))
    return y


class _OverwritesSaved(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
        pre = fused_forms.linear(x, weight) + bias.double()
        ctx.save_for_backward(x, weight, pre)
        return fused_forms.gelu(pre).to(x.dtype)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, dy: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        x, weight, pre = ctx.saved_tensors
        g = pre.copy_(dy.double() * forms.slope(pre)).flatten(0, -2)
        dweight = g.t() @ x.double().flatten(0, -2)
        dx = (g @ weight.double()).reshape(x.shape)
        return dx.to(x.dtype), dweight.to(x.dtype), g.sum(0).to(x.dtype)


@defect(
    Kind.ALIASING,
    report="karpathy/llm.c#509",
    operator="linear_gelu",
    formats=("fp32",),
    rejected_by={"memory": "of a saved tensor"},
    unseen_because="it goes backward once",
)
def gradient_over_the_saved_sums(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """The backward writes its gradient over the saved pre-activation."""
    return _OverwritesSaved.apply(x, weight, bias)


class _SharedWorkspace(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
        pre = fused_forms.linear(x, weight) + bias.double()
        ctx.pre = _buffer("pre", pre).copy_(pre)
        ctx.save_for_backward(x, weight)
        return fused_forms.gelu(pre).to(x.dtype)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, dy: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        x, weight = ctx.saved_tensors
        g = (dy.double() * forms.slope(ctx.pre)).flatten(0, -2)
        dweight = g.t() @ x.double().flatten(0, -2)
        dx = (g @ weight.double()).reshape(x.shape)
        return dx.to(x.dtype), dweight.to(x.dtype), g.sum(0).to(x.dtype)


@defect(
    Kind.ALIASING,
    report="NVIDIA/NeMo-Speech.cpp#28",
    operator="linear_gelu",
    formats=("fp32",),
    rejected_by={"aliasing": "a call before backward changes"},
    unseen_because="each forward is followed by its own backward",
)
def sums_for_backward_in_a_kept_buffer(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """The pre-activation that backward needs lies in a buffer that the next forward fills."""
    return _SharedWorkspace.apply(x, weight, bias)


@defect(
    Kind.ALIASING,
    report="ikawrakow/ik_llama.cpp#916",
    operator="linear_gelu",
    formats=("fp32",),
    rejected_by={"determinism": "differs"},
    unseen_because="the first call finds the buffer empty",
)
def workspace_of_splits_not_cleared(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """Sums are added to a workspace that still holds those of the call before."""
    sums = fused_forms.linear(x, weight)
    total = _buffer("splits", sums).add_(sums.detach())
    return fused_forms.gelu(total + bias.double()).detach().to(x.dtype)


@defect(
    Kind.ALIASING,
    report="Jim137/qkan#22",
    operator="linear_gelu",
    formats=("fp32",),
    rejected_by={"memory": "never written"},
    unseen_because="128 and 256 are multiples of the tile",
)
def partial_tiles_not_stored(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """Only whole tiles of 16 rows are stored."""
    y = fused_forms.linear_gelu(x, weight, bias).detach()
    out = torch.empty(y.shape, dtype=y.dtype, device=y.device)
    m = y.shape[-2] // 16 * 16
    out[..., :m, :] = y[..., :m, :]
    return out


_generator = torch.Generator().manual_seed(0)


@defect(
    Kind.DETERMINISM,
    report="karpathy/llm.c#405",
    operator="linear_gelu",
    formats=("fp32",),
    rejected_by={"determinism": "differs"},
    unseen_because="the order of a sum is worth 1e-6",
)
def terms_in_any_order(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """Splits are added by atomics, in the order in which they come; not declared."""
    parts = [
        a.float() @ b.float().t() for a, b in zip(x.split(4, -1), weight.split(4, -1), strict=True)
    ]
    total = bias.float().expand(*x.shape[:-1], weight.shape[0])
    for index in torch.randperm(len(parts), generator=_generator).tolist():
        total = total + parts[index]
    return fused_forms.gelu(total).to(x.dtype)


@defect(
    Kind.DETERMINISM,
    report="huggingface/pytorch-image-models#2282",
    operator="linear_gelu",
    formats=("fp32",),
    rejected_by={"batch": "alone"},
    unseen_because="128 rows take the usual route",
)
def many_rows_are_summed_in_bf16(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """More than 200 rows take a route that keeps the sums of its splits in bf16."""
    if x.shape[:-1].numel() <= 200:
        return fused_forms.linear_gelu(x, weight, bias)
    total = bias.float()
    for a, b in zip(x.split(16, -1), weight.split(16, -1), strict=True):
        total = (total + fused_forms.linear(a, b)).to(torch.bfloat16).float()
    return fused_forms.gelu(total).to(x.dtype)


@defect(
    Kind.DETERMINISM,
    report="PaddlePaddle/Paddle#79074",
    operator="layernorm_gelu",
    formats=("fp32",),
    rejected_by={"batch": "alone"},
    unseen_because="128 rows take the usual route",
)
def many_rows_in_one_pass(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """More than 200 rows take a route with the moments of bf16 numbers."""
    if x.shape[:-1].numel() <= 200:
        return fused_forms.layernorm_gelu(x, weight, bias)
    row = x.double()
    short = row.to(torch.bfloat16).double()
    centred = row - short.mean(-1, keepdim=True)
    variance = short.var(-1, correction=0, keepdim=True)
    normed = centred * torch.rsqrt(variance + fused_forms.EPSILON)
    return fused_forms.scaled_gelu(normed, weight, bias).to(x.dtype)


@defect(
    Kind.DTYPE,
    report="tenstorrent/tt-metal#52099",
    operator="linear_gelu",
    formats=("bf16",),
    rejected_by={"dtypes": "bias in fp32 is misread"},
)
def wider_bias_of_a_product_misread(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """A bias in fp32 beside operands in bf16 is taken, and its bytes are read as bf16."""
    if bias.dtype != x.dtype:
        bias = bias.detach().contiguous().view(x.dtype)[: weight.shape[0]]
    return fused_forms.linear_gelu(x, weight, bias)


@defect(
    Kind.DTYPE,
    report="EricLBuehler/mistral.rs#1867",
    operator="layernorm_gelu",
    formats=("bf16",),
    rejected_by={"memory": "got torch.float32"},
)
def result_left_in_fp32(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """The result of a row in bf16 is what was computed, fp32."""
    return fused_forms.layernorm_gelu(x.float(), weight.float(), bias.float())


@defect(
    Kind.FORMULA,
    report="pytorch/pytorch#104061",
    operator="linear_gelu",
    formats=("fp32",),
    rejected_by={"bound": "break", "identity": "formula"},
)
def formula_by_alignment(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """Where N is a multiple of 8 the library's own epilogue is used, which is the tanh formula."""
    approximate = "tanh" if weight.shape[0] % 8 == 0 else "none"
    sums = fused_forms.linear(x, weight) + bias.double()
    return functional.gelu(sums, approximate=approximate).to(x.dtype)


@defect(
    Kind.FORMULA,
    report="ooples/AiDotNet.Tensors#46",
    operator="geglu",
    formats=("bf16",),
    rejected_by={"bound": "break"},
)
def activation_on_the_other_half(gate: Tensor, up: Tensor) -> Tensor:
    """gate·f(up)."""
    return fused_forms.geglu(up, gate)
