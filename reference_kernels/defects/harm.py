"""Kernels that harm their process: crash, hang, eat memory. Each runs in a process of its own."""

from __future__ import annotations

import os
import signal

from torch import Tensor

from gelu_verify.selftest.entry import Kind, defect
from reference_kernels.sound import forms


@defect(
    Kind.HARM,
    report="pytorch/pytorch#86218",
    formats=("fp32",),
    rejected_by={"special_values": "was killed by signal SIGABRT"},
    unseen_because="no test calls it on a tensor without dimensions",
    harmful=True,
)
def aborts_on_a_scalar(x: Tensor) -> Tensor:
    """A tensor without dimensions ends the process, not the call."""
    if x.dim() == 0:
        os.kill(os.getpid(), signal.SIGABRT)
    return forms.erf(x)
