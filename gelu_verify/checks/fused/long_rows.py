"""A length whose work grows with its square: attention's. Chosen rows of a long result are judged.

The exact value of one row takes as much as the length; all of them, and all scores, would take
minutes and gigabytes. Whether a kernel itself can go so far is seen at a length of 2^12: time and
memory of the call, which grow with the square at most.
"""

from __future__ import annotations

import contextlib
import re
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from gelu_verify.checks.fused import ratios
from gelu_verify.checks.fused.case import FusedCase
from gelu_verify.inputs.problems import Problem, ladder

#: Rows judged: this many on either side of the ends and of where an index may wrap.
_AROUND = 6
_MARKS = (0, 2**15, 2**16)
#: What a call may take, as foreseen.
_SECONDS = 20.0
_BYTES = 2**30


def judged(case: FusedCase, problem: Problem) -> ratios.Ratios:
    """Return the ratios of chosen rows of a long case, which are rows of its first argument.

    By float64 alone: a row of 2^16 takes mpmath seconds an element.
    """
    inputs = case.inputs(problem)
    result = case.call(inputs)
    length = dict(problem.dims)[str(ladder.squared(case.operator))]
    chosen = _chosen(length).to(result.device)
    picked = (inputs[0].index_select(-2, chosen), *inputs[1:])
    actual = result.detach().index_select(-2, chosen)
    exact = case.operator.forward(picked, case.job.formula, case.arithmetic)
    return ratios.judged(actual, exact, case.subject.fmt, case.contract, str(problem))


def _chosen(length: int) -> Tensor:
    near = {mark + by for mark in (*_MARKS, length) for by in range(-_AROUND, _AROUND)}
    return torch.tensor(sorted(row for row in near if 0 <= row < length))


@dataclass(frozen=True)
class Cost:
    """Wall time and peak of further memory of a call at a length; None: it cannot be measured."""

    length: int
    seconds: float
    bytes: int | None

    def hindrance(self, length: int, device: torch.device) -> str:
        """Say why a longer call is not tried; empty if it can be."""
        more = (length / self.length) ** 2
        if self.bytes is None:
            return "the memory of a call cannot be measured here"
        if self.bytes * more > _room(device):
            return f"would need about {self.bytes * more / 2**30:.1f} GiB"
        if self.seconds * more > _SECONDS:
            return f"would take about {self.seconds * more:.0f} s"
        return ""


def cost(case: FusedCase, problem: Problem) -> Cost:
    """Call the kernel on a case and return what that took. Raises ``KernelFailure``.

    The first call compiles; of the next two the quicker and the larger count.
    """
    inputs = case.inputs(problem)
    case.call(inputs)
    seconds, peaks = [], []
    for _ in range(2):
        started = time.perf_counter()
        peaks.append(_peak(lambda: case.call(inputs), case.subject.device))
        seconds.append(time.perf_counter() - started)
    measured = [peak for peak in peaks if peak is not None]
    length = dict(problem.dims)[str(ladder.squared(case.operator))]
    return Cost(length, min(seconds), max(measured, default=None))


def _room(device: torch.device) -> float:
    if device.type == "cuda":
        return torch.cuda.mem_get_info(device)[0] / 2
    return _BYTES


def _peak(call: Callable[[], object], device: torch.device) -> int | None:
    """Return the most memory in use during a call beyond what was in use before it, in bytes."""
    if device.type == "cuda":
        before = torch.cuda.memory_allocated(device)
        torch.cuda.reset_peak_memory_stats(device)
        call()
        return torch.cuda.max_memory_allocated(device) - before
    with contextlib.suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")  # Linux: the peak starts anew
        before = _resident("VmRSS")
        call()
        return _resident("VmHWM") - before
    return None


def _resident(name: str) -> int:
    text = Path("/proc/self/status").read_text()
    found = re.search(rf"^{name}:\s+(\d+) kB$", text, re.MULTILINE)
    if found is None:
        raise OSError(f"/proc/self/status: got no {name}.")
    return 1024 * int(found[1])
