"""Operands of fused kernels that are read at other strides or offsets than they have."""

from __future__ import annotations

import torch
from torch import Tensor

from gelu_verify.selftest.entry import Kind, defect
from reference_kernels.sound import fused_forms

_CONTIGUOUS = "every operand is contiguous"


def read_as_contiguous(x: Tensor) -> Tensor:
    """Return what is read from the first element on as if x were contiguous.

    It ends where the storage does and begins again: what lies behind is not ours to read.
    """
    size = x.untyped_storage().nbytes() // x.element_size()
    if not size:
        return x
    places = (x.storage_offset() + torch.arange(x.numel(), device=x.device)) % size
    return torch.as_strided(x, (size,), (1,), 0)[places].reshape(x.shape)


@defect(
    Kind.LAYOUT,
    report="pytorch/pytorch#98212",
    operator="linear_gelu",
    formats=("fp32",),
    rejected_by={"bound": "layout=transposed"},
    unseen_because=_CONTIGUOUS,
)
def transposed_weight_passes_the_guard(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """A guard lets any dense weight through, a transposed one too, and it is read row by row."""
    dense = weight.stride() == (1, weight.shape[0])
    return fused_forms.linear_gelu(x, read_as_contiguous(weight) if dense else weight, bias)


@defect(
    Kind.LAYOUT,
    report="vllm-project/vllm#3324",
    operator="linear_gelu",
    formats=("fp32",),
    rejected_by={"bound": "layout="},
    unseen_because=_CONTIGUOUS,
)
def row_stride_of_x_ignored(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """Rows of x are taken to lie K elements apart, as they do not in a chunk of a projection."""
    apart = x.dim() == 2 and x.stride(1) == 1 and x.stride(0) > x.shape[1]
    return fused_forms.linear_gelu(read_as_contiguous(x) if apart else x, weight, bias)


@defect(
    Kind.LAYOUT,
    report="huggingface/candle#3744",
    operator="attention",
    formats=("fp32",),
    rejected_by={"bound": "layout=expanded"},
    unseen_because=_CONTIGUOUS,
)
def expanded_values_misread(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Values with a stride of 0 are walked through as if every row were there."""
    return fused_forms.attention(q, k, read_as_contiguous(v) if 0 in v.stride() else v)


@defect(
    Kind.LAYOUT,
    report="pytorch/pytorch#194497",
    operator="linear_gelu",
    formats=("fp32",),
    rejected_by={"bound": "layout="},
    unseen_because="the bias begins its storage",
)
def bias_read_from_an_aligned_address(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """A bias that is a slice is read from the 16 bytes in which it begins."""
    vector = 16 // bias.element_size()
    start = bias.storage_offset() // vector * vector
    if bias.is_contiguous() and start != bias.storage_offset():
        bias = torch.as_strided(bias, bias.shape, (1,), start)
    return fused_forms.linear_gelu(x, weight, bias)


@defect(
    Kind.LAYOUT,
    report="pytorch/executorch#21837",
    operator="conv_relu_pool",
    formats=("fp32",),
    rejected_by={"bound": "layout=channels_last"},
    unseen_because=_CONTIGUOUS,
)
def pictures_with_channels_last_in_plain_order(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """Takes pictures with channels last for such with channels first."""
    last = x.is_contiguous(memory_format=torch.channels_last) and not x.is_contiguous()
    return fused_forms.conv_relu_pool(read_as_contiguous(x) if last else x, weight, bias)


@defect(
    Kind.LAYOUT,
    report="facebookresearch/xformers#317",
    operator="linear_gelu",
    formats=("fp32",),
    rejected_by={"bound": "break"},
)
def bias_twice(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """The product starts from the bias and the epilogue adds it again."""
    return fused_forms.linear_gelu(x, weight, 2 * bias)


@defect(
    Kind.LAYOUT,
    report="microsoft/onnxscript#2393",
    operator="linear_gelu",
    formats=("fp32",),
    rejected_by={"bound": "break"},
    unseen_because="M and N differ: the fault needs a square result",
)
def bias_of_a_square_along_rows(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """Where the result is square, its bias is added along the other axis."""
    if x.dim() != 2 or x.shape[0] != weight.shape[0]:
        return fused_forms.linear_gelu(x, weight, bias)
    return fused_forms.gelu(fused_forms.linear(x, weight) + bias.double()[:, None]).to(x.dtype)


@defect(
    Kind.LAYOUT,
    operator="linear_gelu",
    formats=("fp32",),
    rejected_by={"bound": "b="},
    unseen_because="x has two dimensions there",
)
def batch_and_rows_exchanged(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """A batch (B, M, K) is written out as if it were (M, B, K)."""
    if x.dim() < 3:
        return fused_forms.linear_gelu(x, weight, bias)
    y = fused_forms.linear_gelu(x.transpose(0, 1), weight, bias)
    return y.reshape(*x.shape[:-1], y.shape[-1])
