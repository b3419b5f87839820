"""Results that depend on the call: its number, its order, what ran before."""

from __future__ import annotations

import itertools

import torch
from torch import Tensor

from gelu_verify.selftest.entry import Kind, defect
from reference_kernels.sound import forms

_ONE_CALL = "it calls once"
_calls: dict[str, itertools.count[int]] = {}


def _number(name: str) -> int:
    """Return how often a kernel was called before, in this process."""
    return next(_calls.setdefault(name, itertools.count()))


@defect(
    Kind.DETERMINISM,
    report="Xilinx/mlir-aie#3656",
    rejected_by={"conduct": "two identical calls differ"},
    unseen_because=_ONE_CALL,
)
def every_other_call_differs(x: Tensor) -> Tensor:
    """Two buffers in turn, one of them a step off."""
    y = forms.erf(x)
    if _number("other") % 2:
        return torch.where((x > 1) & (x < 2), torch.nextafter(y, torch.zeros_like(y)), y)
    return y


@defect(
    Kind.DETERMINISM,
    report="karpathy/llm.c#405",
    rejected_by={"conduct": "two identical calls differ"},
    unseen_because="the last bit is within every tolerance",
)
def random_last_bit(x: Tensor) -> Tensor:
    """Atomics in no fixed order: the last bit is another one in every call."""
    y = forms.erf(x)
    chosen = (torch.rand(x.shape, device=x.device) < 0.5) & torch.isfinite(y) & (x.abs() > 1e-3)
    return torch.where(chosen, torch.nextafter(y, torch.zeros_like(y)), y)


@defect(
    Kind.DETERMINISM,
    report="ikawrakow/ik_llama.cpp#916",
    rejected_by={"conduct": "after 256 calls identical ones differ"},
    unseen_because=_ONE_CALL,
)
def drifts_after_many_calls(x: Tensor) -> Tensor:
    """From the hundredth call on a workspace is reused, and large results are off by a step."""
    y = forms.erf(x)
    if _number(f"drift {x.dtype}") < 100:
        return y
    return torch.where((x > 2) & (x < 3), torch.nextafter(y, torch.zeros_like(y)), y)


_last: dict[str, float] = {}


@defect(
    Kind.DETERMINISM,
    report="ikawrakow/ik_llama.cpp#916",
    formats=("fp32",),
    rejected_by={"conduct": "identical calls"},
    unseen_because=_ONE_CALL,
)
def depends_on_the_last_call(x: Tensor) -> Tensor:
    """Scales by the largest number of the call before, as a stale statistic would."""
    finite = x[torch.isfinite(x)]
    largest = float(finite.abs().max()) if finite.numel() else 0.0
    before, _last["largest"] = _last.get("largest", largest), largest
    y = forms.erf(x)
    return y if before == largest else torch.where((x > 1) & (x < 2), y * 0.9995, y).to(x.dtype)
