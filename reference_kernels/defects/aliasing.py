"""Memory that is not the kernel's to keep, to share or to overwrite, or that it never wrote."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from gelu_verify.selftest.entry import Kind, defect
from reference_kernels.sound import forms

_LOOKS_AT_VALUES = "it compares the values of one call, which are right"


@defect(
    Kind.ALIASING,
    report="karpathy/llm.c#509",
    rejected_by={"conduct": "argument x was overwritten"},
    unseen_because=_LOOKS_AT_VALUES,
)
def overwrites_its_input(x: Tensor) -> Tensor:
    """Leaves the result in x as well."""
    y = forms.erf(x)
    if 0 not in x.stride():
        x.copy_(y)
    return y


@defect(
    Kind.ALIASING,
    report="karpathy/llm.c#509",
    operator="gelu_backward",
    formats=("fp32",),
    rejected_by={"conduct": "argument dy was overwritten"},
    unseen_because=_LOOKS_AT_VALUES,
)
def overwrites_dy(dy: Tensor, x: Tensor) -> Tensor:
    """Uses the buffer of dy for the gradient."""
    y = forms.backward(dy, x)
    if 0 not in dy.stride():
        dy.copy_(y)
    return y


@defect(
    Kind.ALIASING,
    report="pytorch/pytorch#91249",
    rejected_by={"conduct": "shares storage with an argument"},
    unseen_because=_LOOKS_AT_VALUES,
)
def returns_its_input_when_saturated(x: Tensor) -> Tensor:
    """Where every element is beyond the identity threshold x itself is the result."""
    if x.numel() and bool((x > 9.0).all()):
        return x
    return forms.erf(x)


_buffers: dict[torch.Size, Tensor] = {}


@defect(
    Kind.ALIASING,
    report="ikawrakow/ik_llama.cpp#916",
    formats=("fp32",),
    devices=("cpu",),
    rejected_by={"conduct": "two calls return the same storage"},
    unseen_because="a second call would have to come before the comparison",
)
def one_buffer_for_all_calls(x: Tensor) -> Tensor:
    """Keeps one buffer a shape: a second call changes the first result."""
    out = _buffers.setdefault(x.shape, torch.empty(x.shape, dtype=x.dtype))
    return out.copy_(forms.erf(x))


@defect(
    Kind.ALIASING,
    report="Jim137/qkan#22",
    rejected_by={"memory": "never written"},
    unseen_because="its size is a multiple of 8, so that every element is written",
)
def remainder_never_written(x: Tensor) -> Tensor:
    """The last elements of a size that is no multiple of 8 are what the allocator left there."""
    y = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    whole = x.numel() // 8 * 8
    y.view(-1)[:whole] = forms.erf(x.reshape(-1)[:whole])
    return y


@defect(
    Kind.ALIASING,
    report="NVIDIA/NeMo-Speech.cpp#28",
    devices=("cpu",),
    rejected_by={"memory": "written outside"},
    unseen_because=_LOOKS_AT_VALUES,
)
def writes_past_its_result(x: Tensor) -> Tensor:
    """The store of the last, partial vector has no mask: up to 7 elements behind the result."""
    rest = -x.numel() % 8
    buffer = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    buffer.copy_(forms.erf(x))
    if rest:
        _poke(buffer, rest)
    return buffer


def _poke(buffer: Tensor, count: int) -> None:
    """Write zeros behind a tensor, where its storage has room (as it has inside guard bands)."""
    behind = buffer.storage_offset() + buffer.numel()
    room = buffer.untyped_storage().nbytes() // buffer.element_size() - behind
    if room >= count:
        torch.as_strided(buffer, (count,), (1,), behind).zero_()


_saved: dict[tuple[torch.Size, torch.dtype], Tensor] = {}


class _SharedSave(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        key = (x.shape, x.dtype)
        kept = _saved.setdefault(key, torch.empty(x.shape, dtype=x.dtype, device=x.device))
        ctx.kept = kept.copy_(x)
        return forms.erf(x)

    @staticmethod
    def backward(ctx: Any, dy: Tensor) -> Tensor:
        return forms.backward(dy, ctx.kept)


@defect(
    Kind.ALIASING,
    report="NVIDIA/NeMo-Speech.cpp#28",
    formats=("fp32",),
    gradient="only",
    rejected_by={"conduct": "changes the gradient"},
    unseen_because="each forward is followed by its own backward",
)
def saves_for_backward_in_one_buffer(x: Tensor) -> Tensor:
    """What backward needs lies in one buffer: a second forward changes the first one's gradient."""
    return _SharedSave.apply(x)
