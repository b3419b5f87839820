"""How long calls of a kernel take, on arguments that no cache holds.

On a GPU ``triton.testing.do_bench`` times each call by CUDA events after a warm-up and clears the
L2 cache before it; on a CPU ``torch.utils.benchmark`` times blocks of calls on arguments of 2^24
elements. The median counts; what is told beside it is how far the calls scatter.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor

from gelu_verify.checks.case import Case, Outcome
from gelu_verify.checks.fused import FusedCase
from gelu_verify.inputs.problems import parse
from gelu_verify.kernels import activity
from gelu_verify.kernels.failure import failure
from gelu_verify.kernels.subject import Callee, require_like
from gelu_verify.records import Finding, FindingStatus, Speed

#: Elements of each argument of an elementwise kernel: beyond the caches, in every format.
_ELEMENTS = {"cpu": 1 << 24, "cuda": 1 << 28}
#: The case of a fused operator on a GPU, and on a CPU.
_CASES = {
    "linear_gelu": {"cuda": "m=8192,k=768,n=3072", "cpu": "m=512,k=768,n=3072"},
    "bias_gelu": {"cuda": "m=16384,n=3072", "cpu": "m=4096,n=3072"},
    "geglu": {"cuda": "m=16384,n=3072", "cpu": "m=4096,n=3072"},
    "layernorm_gelu": {"cuda": "m=16384,n=3072", "cpu": "m=4096,n=3072"},
    "conv_relu_pool": {"cuda": "n=64,c=64,h=64,w=64,o=64", "cpu": "n=4,c=32,h=64,w=64,o=32"},
    "attention": {"cuda": "b=4,h=16,l=2048,d=64", "cpu": "b=1,h=4,l=512,d=64"},
}
_GPU_MS = {"warmup": 100, "rep": 400}
_CPU_SECONDS = 1.0


def run(case: Case | FusedCase) -> Outcome:
    """Time the kernel; what cannot be timed by itself is skipped, with the reason."""
    reason = _hindrance(case)
    if reason is not None:
        finding = Finding(check="speed", status=FindingStatus.SKIPPED, message=reason)
        return Outcome([finding])
    return Outcome(fields={"speed": measured(case)})


def _hindrance(case: Case | FusedCase) -> str | None:
    if case.job.via:
        return "not measured: a backward through autograd is no call of its own"
    if case.subject.simulated:
        return "not measured: the kernel ran in Triton's CPU interpreter"
    return None


def measured(case: Case | FusedCase) -> Speed:
    """Return the times of calls of a kernel. Raises ``KernelFailure`` for one that raises."""
    subject = case.subject
    name, arguments = _arguments(case)
    with torch.no_grad():
        result = subject.call(*arguments)  # compiles and tunes; a fault is told as any other
        if not isinstance(result, Tensor):
            require_like(result, arguments[0].shape, subject.dtype)
        times_us, method = _times(subject, lambda: subject.function(*arguments))
    low, median, high = np.quantile(times_us, (0.1, 0.5, 0.9))
    return Speed(
        case=name,
        elements=result.numel(),
        moved_bytes=sum(part.numel() * part.element_size() for part in (*arguments, result)),
        calls=len(times_us),
        call_us=float(median),
        low_us=float(low),
        high_us=float(high),
        threads=None if subject.device.type == "cuda" else torch.get_num_threads(),
        method=method,
    )


def _arguments(case: Case | FusedCase) -> tuple[str, tuple[Tensor, ...]]:
    """Return the name of the case that is timed, and its arguments on the kernel's device."""
    device = case.subject.device
    if isinstance(case, FusedCase):
        line = _CASES[case.job.operator][device.type]
        return line, case.inputs(parse(line, case.operator))
    count = _ELEMENTS[device.type]
    generator = torch.Generator(device).manual_seed(case.job.seed)
    return f"n={count}", tuple(
        torch.randn(count, generator=generator, device=device).to(case.subject.dtype)
        for _ in case.subject.operator.arguments
    )


def _times(subject: Callee, call: Callable[[], Any]) -> tuple[list[float], str]:
    """Return the time of every call (or block of calls) in µs, and how they were taken."""
    try:
        with activity.of_kernel():
            return _on_gpu(call) if subject.device.type == "cuda" else _on_cpu(call)
    except (Exception, SystemExit) as error:
        raise failure(error) from error


def _on_gpu(call: Callable[[], Any]) -> tuple[list[float], str]:
    from triton.testing import do_bench

    times_ms = do_bench(call, **_GPU_MS, return_mode="all")
    method = "triton.testing.do_bench: CUDA events, the L2 cache cleared before each call"
    return [1e3 * time for time in times_ms], method


def _on_cpu(call: Callable[[], Any]) -> tuple[list[float], str]:
    from torch.utils.benchmark import Timer

    timer = Timer("call()", globals={"call": call}, num_threads=torch.get_num_threads())
    found = timer.blocked_autorange(min_run_time=_CPU_SECONDS)
    return [1e6 * time for time in found.times], "torch.utils.benchmark: blocked_autorange"
