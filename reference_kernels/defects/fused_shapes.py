"""Sizes that are no multiple of a tile or a vector, and indices of 16 bits."""

from __future__ import annotations

import math

import torch
from torch import Tensor
from torch.nn import functional

from gelu_verify.selftest.entry import Kind, defect
from reference_kernels.sound import fused_forms

_TILE = 16
_MULTIPLE = "all sizes are multiples of a tile"


@defect(
    Kind.SHAPE,
    report="triton-lang/triton#630",
    operator="linear_gelu",
    formats=("fp32",),
    rejected_by={"bound": "break"},
    unseen_because=_MULTIPLE,
)
def remainder_of_k_dropped(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """What is left of K after whole tiles of 32 is not added."""
    k = x.shape[-1] // 32 * 32 or x.shape[-1]
    return fused_forms.linear_gelu(x[..., :k], weight[..., :k], bias)


@defect(
    Kind.SHAPE,
    report="triton-lang/triton#9838",
    operator="layernorm_gelu",
    formats=("fp32",),
    rejected_by={"bound": "break"},
    unseen_because="a row of 1024 fills its block: there is no padding",
)
def padding_in_the_variance(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """A row is padded with zeros to a power of two, and each adds mean² to the variance."""
    row, n = x.double(), x.shape[-1]
    mean = row.mean(-1, keepdim=True)
    padding = 2 ** max(n - 1, 0).bit_length() - n
    squares = (row - mean).square().sum(-1, keepdim=True) + padding * mean.square()
    normed = (row - mean) * torch.rsqrt(squares / n + fused_forms.EPSILON)
    return fused_forms.scaled_gelu(normed, weight, bias).to(x.dtype)


@defect(
    Kind.SHAPE,
    report="tenstorrent/tt-metal#16272",
    operator="attention",
    formats=("fp32",),
    rejected_by={"bound": "break"},
    unseen_because=_MULTIPLE,
)
def padding_in_the_softmax(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Keys are padded with zeros to whole tiles, and each padded score adds exp(0) to the sum."""
    padding = -k.shape[-2] % _TILE
    pad = (0, 0, 0, padding)
    return fused_forms.attention(q, functional.pad(k, pad), functional.pad(v, pad))


@defect(
    Kind.SHAPE,
    report="triton-lang/triton#9838",
    operator="attention",
    formats=("fp32",),
    rejected_by={"bound": "break"},
    unseen_because="64 is a power of two",
)
def scale_of_the_padded_width(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Scores are divided by the root of the width that was padded to a power of two."""
    d = max(q.shape[-1], 1)
    padded = 2 ** (d - 1).bit_length()
    return fused_forms.attention(q * math.sqrt(d / padded), k, v)


@defect(
    Kind.SHAPE,
    report="sgl-project/sglang#23609",
    operator="linear_gelu",
    formats=("fp32",),
    rejected_by={"bound": "invalid configuration"},
    unseen_because="no size is 0",
)
def no_rows_are_an_invalid_launch(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """A grid of no blocks is launched, which fails."""
    if x.shape[:-1].numel() == 0:
        raise RuntimeError("CUDA error: invalid configuration argument")
    return fused_forms.linear_gelu(x, weight, bias)


@defect(
    Kind.SHAPE,
    report="flashinfer-ai/flashinfer#5013",
    operator="layernorm_gelu",
    formats=("fp32",),
    rejected_by={"memory": "never written"},
    unseen_because="1024 is a multiple of 8",
)
def last_columns_of_a_row_not_written(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """Rows are stored in vectors of 8: the columns that are left keep what memory held."""
    out = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    n = x.shape[-1] // 8 * 8
    out[..., :n] = fused_forms.layernorm_gelu(x, weight, bias)[..., :n]
    return out


@defect(
    Kind.SHAPE,
    operator="conv_relu_pool",
    formats=("fp32",),
    rejected_by={"bound": "break"},
    unseen_because="16 channels fill a tile",
)
def channels_read_in_whole_tiles(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """Channels are summed in whole tiles of 4; the last one begins early and counts some twice."""
    c = x.shape[1]
    if c < 4 or c % 4 == 0:
        return fused_forms.conv_relu_pool(x, weight, bias)
    index = torch.cat([torch.arange(c // 4 * 4), torch.arange(c - 4, c)]).to(x.device)
    return fused_forms.conv_relu_pool(x[:, index], weight[:, index], bias)


@defect(
    Kind.SHAPE,
    operator="conv_relu_pool",
    formats=("fp32",),
    rejected_by={"bound": "break"},
)
def border_read_from_the_next_row(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """Left and right of a picture no mask is applied: the neighbours in memory are read."""
    n, c, h, w = x.shape
    rows = functional.pad(x.double().reshape(n, c, h * w), (w + 1, w + 1))
    wide = rows.unfold(-1, w + 2, w)[..., : h + 2, :]
    sums = functional.conv2d(wide, weight.double(), bias.double())
    return fused_forms.pooled(sums).to(x.dtype)


@defect(
    Kind.SHAPE,
    operator="conv_relu_pool",
    formats=("fp32",),
    rejected_by={"bound": "break"},
    unseen_because="pictures are 32 by 32",
)
def windows_of_odd_pictures_shifted(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """Of a picture of odd width, windows begin at the second column."""
    sums = fused_forms.convolved(x, weight, bias)
    odd = x.shape[-1] % 2 and x.shape[-1] > 1
    return fused_forms.pooled(sums[..., 1:] if odd else sums).to(x.dtype)


def _wrapped(count: int, bits: int, device: torch.device) -> Tensor:
    """Return 0 to count - 1 as unsigned numbers of so many bits hold them."""
    return torch.arange(count, device=device) % 2**bits


@defect(
    Kind.INDEX,
    report="thu-ml/SageAttention#386",
    operator="linear_gelu",
    formats=("fp32",),
    rejected_by={"large": "m of 65,537"},
    unseen_because="128 rows are counted in 16 bits",
)
def rows_counted_in_16_bits(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """The row of x is a number of 16 bits: row 65,536 is row 0 again."""
    if x.shape[0] <= 2**16:
        return fused_forms.linear_gelu(x, weight, bias)
    return fused_forms.linear_gelu(x[_wrapped(x.shape[0], 16, x.device)], weight, bias)


@defect(
    Kind.INDEX,
    report="state-spaces/mamba#1015",
    operator="linear_gelu",
    formats=("fp32",),
    rejected_by={"large": "k of 65,537"},
    unseen_because="256 terms are counted in 16 bits",
)
def terms_counted_in_15_bits(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """The place in a sum is a signed number of 16 bits: beyond 32,767 it begins again."""
    if x.shape[-1] <= 2**15:
        return fused_forms.linear_gelu(x, weight, bias)
    index = _wrapped(x.shape[-1], 15, x.device)
    return fused_forms.linear_gelu(x[..., index], weight, bias)


@defect(
    Kind.INDEX,
    report="thu-ml/SageAttention#386",
    operator="layernorm_gelu",
    formats=("fp32",),
    rejected_by={"large": "m of 65,537"},
)
def offsets_of_rows_in_16_bits(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """row·N is computed in 16 bits, so that elements beyond 65,536 are read from the start."""
    if x.dim() != 2 or x.numel() <= 2**16:
        return fused_forms.layernorm_gelu(x, weight, bias)
    n = x.shape[1]
    starts = torch.arange(x.shape[0], device=x.device) * n % 2**16
    places = starts[:, None] + torch.arange(n, device=x.device)
    return fused_forms.layernorm_gelu(x.reshape(-1)[places], weight, bias)


@defect(
    Kind.INDEX,
    report="Jim137/qkan#22",
    operator="geglu",
    formats=("fp32",),
    rejected_by={"large": "break"},
)
def number_of_elements_in_16_bits(gate: Tensor, up: Tensor) -> Tensor:
    """The number of elements is cut to 16 bits: what is beyond stays zero."""
    y = fused_forms.geglu(gate, up)
    count = y.numel() % 2**16
    return torch.cat([y.reshape(-1)[:count], y.new_zeros(y.numel() - count)]).reshape(y.shape)


@defect(
    Kind.INDEX,
    report="state-spaces/mamba#1015",
    operator="attention",
    formats=("fp32",),
    rejected_by={"large": "h of 65,537"},
    unseen_because="8 heads are counted in 16 bits",
)
def heads_counted_in_16_bits(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """The head is a coordinate of the grid that ends at 65,535: others repeat."""
    if q.dim() != 3 or q.shape[0] <= 2**16:
        return fused_forms.attention(q, k, v)
    heads = _wrapped(q.shape[0], 16, q.device)
    return fused_forms.attention(q[heads], k[heads], v[heads])
