"""The inputs of a call: consecutive patterns."""

from __future__ import annotations

import torch

#: Patterns a program writes: four stores of 16 bytes a thread.
_WRITTEN = 2048


def consecutive_bits(first: int, count: int, device: torch.device) -> torch.Tensor:
    """Return patterns ``first`` to ``first + count - 1`` as int32, which wraps at the sign bit."""
    low = first - ((1 << 32) if first >= 1 << 31 else 0)
    if device.type != "cuda":
        return torch.arange(low, low + count, dtype=torch.int32, device=device)
    from gelu_verify.exhaustive.gpu_kernels import counter_kernel

    bits = torch.empty(count, dtype=torch.int32, device=device)
    counter_kernel[(-(-count // _WRITTEN),)](bits, low, count, BLOCK=_WRITTEN, num_warps=4)
    return bits
