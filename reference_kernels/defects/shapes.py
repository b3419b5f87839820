"""Sizes: remainders of vectors and blocks, nothing at all, more than an offset can hold."""

from __future__ import annotations

import torch
from torch import Tensor

from gelu_verify.selftest.entry import Kind, defect
from reference_kernels.sound import forms

_WHOLE_VECTORS = "1024 columns are whole vectors"


@defect(
    Kind.SHAPE,
    report="flashinfer-ai/flashinfer#5013",
    rejected_by={"routes": "transposed"},
    unseen_because=_WHOLE_VECTORS,
)
def columns_of_the_remainder_skipped(x: Tensor) -> Tensor:
    """Of a matrix whose width is no multiple of 8 the last columns stay 0."""
    y = forms.erf(x)
    rest = x.shape[-1] % 8 if x.dim() > 1 else 0
    if rest:
        y[..., -rest:] = 0.0
    return y


@defect(
    Kind.SHAPE,
    report="flashinfer-ai/flashinfer#5013",
    operator="geglu",
    formats=("fp32",),
    rejected_by={"routes": "single"},
    unseen_because=_WHOLE_VECTORS,
)
def up_of_the_remainder_not_loaded(gate: Tensor, up: Tensor) -> Tensor:
    """The mask of the last, partial vector is applied to the gate and not to up: it reads 1."""
    rest = up.shape[-1] % 8 if up.dim() else 0
    if rest:
        up = up.clone()
        up[..., -rest:] = 1.0
    return forms.geglu(gate, up)


@defect(
    Kind.SHAPE,
    report="sgl-project/sglang#23609",
    formats=("fp32",),
    rejected_by={"conduct": "empty input"},
    unseen_because="there are elements in it",
)
def empty_input_is_an_invalid_launch(x: Tensor) -> Tensor:
    """No elements make a grid of no blocks, which is an error of the driver."""
    if x.numel() == 0:
        raise RuntimeError("CUDA error: invalid configuration argument")
    return forms.erf(x)


_poisoned: set[str] = set()


@defect(
    Kind.SHAPE,
    report="sgl-project/sglang#23609",
    formats=("fp32",),
    rejected_by={"conduct": "call after an empty one"},
    unseen_because="no empty tensor comes before it",
)
def empty_input_poisons_the_next_call(x: Tensor) -> Tensor:
    """After a call on nothing the next one is not launched, and returns zeros."""
    if x.numel() == 0:
        _poisoned.add("stream")
        return torch.empty_like(x)
    if "stream" in _poisoned:
        _poisoned.remove("stream")
        return torch.zeros_like(x)
    return forms.erf(x)


@defect(
    Kind.INDEX,
    report="thu-ml/SageAttention#386",
    formats=("bf16",),
    rejected_by={"routes": "strided"},
    unseen_because="its strides are small",
)
def offsets_of_16_bits(x: Tensor) -> Tensor:
    """index·stride is computed in 16 bits: beyond 65,535 it starts again at the front."""
    if x.dim() != 1 or x.numel() == 0 or x.stride(0) <= 1:
        return forms.erf(x)
    places = torch.arange(x.numel(), device=x.device) * x.stride(0) % 4096
    reach = int(places.max()) + 1
    flat = torch.as_strided(x, (reach,), (1,), x.storage_offset())
    return forms.erf(flat[places])


@defect(
    Kind.INDEX,
    report="Jim137/qkan#22",
    formats=("bf16",),
    rejected_by={"accuracy": "break"},
    unseen_because="it has 131,072 elements in two dimensions, and the grid's limit is of one",
)
def launches_16_bits_of_blocks(x: Tensor) -> Tensor:
    """Elements of a vector beyond 32,767 are never computed."""
    y = forms.erf(x)
    if x.dim() == 1:
        y[32767:] = 0.0
    return y
