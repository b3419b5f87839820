"""Strides, offsets and memory formats that a kernel reads as if they were others."""

from __future__ import annotations

import torch
from torch import Tensor

from gelu_verify.selftest.entry import Kind, defect
from reference_kernels.sound import forms

_CONTIGUOUS = "the input is contiguous"


def _from_the_first(x: Tensor) -> Tensor:
    """Return as many elements as x has, read one behind the other."""
    size = x.untyped_storage().nbytes() // x.element_size()
    storage = torch.as_strided(x, (size,), (1,), 0)
    start = x.storage_offset()
    return storage.roll(-start).repeat(-(-x.numel() // max(size, 1)))[: x.numel()].reshape(x.shape)


@defect(
    Kind.LAYOUT,
    report="huggingface/kernels-community#106",
    rejected_by={"routes": "sliced"},
    unseen_because=_CONTIGUOUS,
)
def reads_a_slice_as_contiguous(x: Tensor) -> Tensor:
    """A half of a projection is read as if its rows touched."""
    if x.dim() == 2 and x.stride(1) == 1 and x.stride(0) != x.shape[1]:
        return forms.erf(_from_the_first(x))
    return forms.erf(x)


@defect(
    Kind.LAYOUT,
    report="vllm-project/vllm#3324",
    operator="geglu",
    formats=("fp32",),
    rejected_by={"routes": "strided"},
    unseen_because=_CONTIGUOUS,
)
def reads_up_as_contiguous(gate: Tensor, up: Tensor) -> Tensor:
    """Strides of the gate are kept, those of up are not."""
    return forms.geglu(gate, up if up.is_contiguous() else _from_the_first(up))


@defect(
    Kind.LAYOUT,
    report="pytorch/pytorch#98212",
    rejected_by={"routes": "transposed"},
    unseen_because=_CONTIGUOUS,
)
def transposed_passes_the_guard(x: Tensor) -> Tensor:
    """A guard asks for dense memory, which a transposed matrix is, and reads it row by row."""
    if x.dim() == 2 and x.stride(0) == 1 and x.stride(1) == x.shape[0]:
        return forms.erf(_from_the_first(x))
    return forms.erf(x)


@defect(
    Kind.LAYOUT,
    report="pytorch/executorch#21837",
    rejected_by={"routes": "channels last"},
    unseen_because="it has two dimensions",
)
def channels_last_in_plain_order(x: Tensor) -> Tensor:
    """Accepts pictures with channels last and reads them as if channels came first."""
    if x.dim() == 4 and not x.is_contiguous():
        return forms.erf(_from_the_first(x))
    return forms.erf(x)


@defect(
    Kind.LAYOUT,
    report="huggingface/candle#3744",
    rejected_by={"routes": "expanded"},
    unseen_because=_CONTIGUOUS,
)
def stride_zero_misread(x: Tensor) -> Tensor:
    """A dimension of stride 0 is walked through as if it had elements."""
    if 0 in x.stride() and x.numel() > 1:
        return forms.erf(_from_the_first(x))
    return forms.erf(x)


@defect(
    Kind.LAYOUT,
    report="pytorch/pytorch#194497",
    rejected_by={"routes": "offset"},
    unseen_because="its storage begins with its first element",
)
def offset_ignored(x: Tensor) -> Tensor:
    """A view that starts inside its storage is rounded down to where a vector may start."""
    start = x.storage_offset()
    if start % 4 and x.is_contiguous():
        return forms.erf(torch.as_strided(x, x.shape, x.stride(), start // 4 * 4))
    return forms.erf(x)


@defect(
    Kind.LAYOUT,
    report="PaddlePaddle/PaddleFleet#100",
    operator="bias_gelu",
    formats=("fp32",),
    rejected_by={"routes": "3-d"},
    unseen_because="x has two dimensions there",
)
def bias_along_another_axis(x: Tensor, bias: Tensor) -> Tensor:
    """Of three dimensions the bias is added along the second, as far as it reaches."""
    if x.dim() != 3:
        return forms.bias(x, bias)
    index = torch.arange(x.shape[1], device=x.device) % bias.numel()
    return forms.erf(x + bias[index][:, None])
