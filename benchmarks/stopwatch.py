"""Time spent inside a kernel while something else drives it."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import torch


def synchronize(device: str) -> None:
    """Wait for a GPU; nothing to wait for elsewhere."""
    if device.startswith("cuda"):
        torch.cuda.synchronize()


class Stopwatch:
    """A kernel that counts the seconds spent in it, ``seconds``."""

    def __init__(self, function: Callable[..., Any], device: str) -> None:
        self.function, self.device = function, device
        self.seconds = 0.0

    def __call__(self, *arguments: torch.Tensor) -> torch.Tensor:
        """Call the kernel, alone on the device."""
        synchronize(self.device)
        started = time.perf_counter()
        result: torch.Tensor = self.function(*arguments)
        synchronize(self.device)
        self.seconds += time.perf_counter() - started
        return result
