"""Consecutive patterns, written at the speed of the memory."""

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def counter_kernel(out_ptr, low: tl.int64, count: tl.int64, BLOCK: tl.constexpr):
    """Write patterns ``low`` to ``low + count - 1`` as int32, which wraps at the sign bit."""
    start = tl.program_id(0).to(tl.int64) * BLOCK
    lane = tl.arange(0, BLOCK)
    values = (low + start).to(tl.int32) + lane
    if start + BLOCK <= count:  # no mask: four at a time
        tl.store(out_ptr + start + lane, values)
    else:
        tl.store(out_ptr + start + lane, values, mask=lane < count - start)
