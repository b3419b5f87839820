"""Kernels that harm their process: crash, hang, eat memory. Each runs in a process of its own."""

from __future__ import annotations

import ctypes
import os
import signal
import time

import torch
from torch import Tensor

from gelu_verify.selftest.entry import Kind, defect
from reference_kernels.sound import forms


@defect(
    Kind.HARM,
    report="pytorch/pytorch#86218",
    formats=("fp32",),
    rejected_by={"special_values": "was killed by signal SIGABRT"},
    unseen_because="it does not call it on a tensor without dimensions",
    harmful=True,
)
def aborts_on_a_scalar(x: Tensor) -> Tensor:
    """A tensor without dimensions ends the process, not the call."""
    if x.dim() == 0:
        os.kill(os.getpid(), signal.SIGABRT)
    return forms.erf(x)


@defect(
    Kind.HARM,
    report="sgl-project/sglang#23609",
    formats=("fp32",),
    rejected_by={"conduct": "was killed by signal SIGSEGV"},
    unseen_because="there are elements in it",
    harmful=True,
)
def reads_the_first_of_nothing(x: Tensor) -> Tensor:
    """Looks at the first element of an empty tensor, at address 0."""
    if x.numel() == 0:
        ctypes.string_at(0)
    return forms.erf(x)


@defect(
    Kind.HARM,
    report="pytorch/pytorch#194497",
    formats=("fp32",),
    rejected_by={"special_values": "exited with status 1"},
    unseen_because="its storage begins with its first element",
    harmful=True,
)
def exits_when_misaligned(x: Tensor) -> Tensor:
    """A vector that is not aligned to 16 bytes is a fault, which the runtime answers by leaving."""
    if x.data_ptr() % 16 and x.numel() >= 8:
        os._exit(1)
    return forms.erf(x)


@defect(
    Kind.HARM,
    formats=("fp32",),
    rejected_by={"conduct": "no answer within"},
    unseen_because="unit normals hold no NaN",
    harmful=True,
)
def iterates_until_nan_converges(x: Tensor) -> Tensor:
    """An iteration ends when the error is below a tolerance, which NaN never is."""
    error = x.clone()
    while not bool((error.abs() <= torch.inf).all()):
        time.sleep(0.01)
    return forms.erf(x)


_kept: list[Tensor] = []


@defect(
    Kind.HARM,
    formats=("fp32",),
    rejected_by={"conduct": "memory: the kernel's process grew to"},
    unseen_because="one call leaks 64 MiB, which nobody looks at",
    harmful=True,
)
def leaks_a_workspace_a_call(x: Tensor) -> Tensor:
    """Keeps a workspace of every call."""
    _kept.append(torch.ones(1 << 24))
    return forms.erf(x)


@defect(
    Kind.HARM,
    report="flashinfer-ai/flashinfer#5013",
    formats=("fp32",),
    rejected_by={"memory": "index out of range"},
    unseen_because="1024 columns are whole vectors",
)
def faults_on_an_odd_length(x: Tensor) -> Tensor:
    """The guard looks at twice the length, so that an odd one passes and then faults."""
    if x.dim() == 1 and x.numel() % 2 and x.numel() * 2 % 2 == 0 and x.numel() < 4096:
        raise IndexError(f"index out of range: {x.numel() + 1}")
    return forms.erf(x)
