"""Which stretch a piece is of: see ``exhaustive.pieces.Stretches``."""

from __future__ import annotations

import triton
import triton.language as tl

#: Stretches of one launch are fewer than 2^10.
SEARCH_STEPS = tl.constexpr(10)


@triton.jit
def stretch_of(program, table_ptr, rows):
    """Return the pointer to the stretch that a piece is of, by bisection of their first pieces."""
    low = program * 0
    high = low + rows
    for _ in tl.static_range(SEARCH_STEPS):
        middle = (low + high) // 2
        here = tl.load(table_ptr + 5 * middle + 2) <= program
        low = tl.where(here, middle, low)
        high = tl.where(here, high, middle)
    return table_ptr + 5 * low
