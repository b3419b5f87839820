"""The figures of pieces, added to the rows of their spans."""

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def _smallest_where_largest(values_ptr, at_ptr, begin, end, BLOCK: tl.constexpr):
    """Return the largest value (0 if none) and the smallest pattern of those that have it."""
    lane = tl.arange(0, BLOCK)
    largest = tl.zeros((BLOCK,), tl.float64)
    for low in range(begin, end, BLOCK):
        mask = low + lane < end
        largest = tl.maximum(largest, tl.load(values_ptr + low + lane, mask=mask, other=0.0))
    top = tl.max(largest, 0)
    at = tl.full((BLOCK,), 4294967296, tl.int64)
    for low in range(begin, end, BLOCK):
        mask = low + lane < end
        value = tl.load(values_ptr + low + lane, mask=mask, other=-1.0)
        here = tl.load(at_ptr + low + lane, mask=mask, other=4294967296)
        at = tl.minimum(at, tl.where(value == top, here, 4294967296))
    return top, tl.min(at, 0)


@triton.jit
def _keep_larger(size_ptr, at_ptr, size, at):
    """Replace a size and its pattern by a larger one; among equals the smaller pattern stays."""
    known, known_at = tl.load(size_ptr), tl.load(at_ptr)
    smaller = tl.minimum(known_at, at)
    kept = tl.where(known > size, known_at, tl.where(known == size, smaller, at))
    tl.store(size_ptr, tl.maximum(known, size))
    tl.store(at_ptr, kept)


@triton.jit
def _keep_range(sizes_ptr, pieces, begin, end, low_ptr, high_ptr, BLOCK: tl.constexpr):
    """Widen the range of signed errors of a row by those of its pieces."""
    lane = tl.arange(0, BLOCK)
    lowest = tl.full((BLOCK,), float("inf"), tl.float64)
    highest = tl.full((BLOCK,), float("-inf"), tl.float64)
    for low in range(begin, end, BLOCK):
        mask, at = low + lane < end, low + lane
        found = tl.load(sizes_ptr + 2 * pieces + at, mask=mask, other=float("inf"))
        lowest = tl.minimum(lowest, found)
        found = tl.load(sizes_ptr + 3 * pieces + at, mask=mask, other=float("-inf"))
        highest = tl.maximum(highest, found)
    tl.store(low_ptr, tl.minimum(tl.load(low_ptr), tl.min(lowest, 0)))
    tl.store(high_ptr, tl.maximum(tl.load(high_ptr), tl.max(highest, 0)))


@triton.jit
def _smallest(values_ptr, begin, end, BLOCK: tl.constexpr):
    lane = tl.arange(0, BLOCK)
    found = tl.full((BLOCK,), 4294967296, tl.int64)
    for low in range(begin, end, BLOCK):
        mask = low + lane < end
        value = tl.load(values_ptr + low + lane, mask=mask, other=4294967296)
        found = tl.minimum(found, value)
    return tl.min(found, 0)


@triton.jit
def _sum_and_high(values_ptr, begin, end, BLOCK: tl.constexpr):
    """Return sums of the low 32 bits and of the rest, which cannot overflow."""
    lane = tl.arange(0, BLOCK)
    low_sum = tl.zeros((BLOCK,), tl.int64)
    high_sum = tl.zeros((BLOCK,), tl.int64)
    for low in range(begin, end, BLOCK):
        value = tl.load(values_ptr + low + lane, mask=low + lane < end, other=0)
        low_sum += value & 0xFFFFFFFF
        high_sum += value >> 32
    return tl.sum(low_sum, 0), tl.sum(high_sum, 0)


@triton.jit
def _add(target_ptr, value):
    tl.store(target_ptr, tl.load(target_ptr) + value)


@triton.jit
def reduce_kernel(
    table_ptr, rows, pieces, sizes_ptr, integers_ptr, row_sizes_ptr, row_integers_ptr,
    COLUMNS: tl.constexpr, SIZES: tl.constexpr, WORST_AT: tl.constexpr, HALF_FIRST: tl.constexpr,
    ONE_FIRST: tl.constexpr, BACK_AT: tl.constexpr, HALF: tl.constexpr, REACH: tl.constexpr,
    CLIPPED: tl.constexpr, SIGNED_LOW: tl.constexpr, LOWEST: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """Add the pieces of one stretch to the row of its span: one program a stretch, no other."""
    stretch = tl.program_id(0)
    begin = tl.load(table_ptr + 5 * stretch + 2).to(tl.int32)
    end = tl.load(table_ptr + 5 * stretch + 7, mask=stretch + 1 < rows, other=pieces).to(tl.int32)
    row = tl.load(table_ptr + 5 * stretch + 4)
    sizes, integers = row_sizes_ptr + SIZES * row, row_integers_ptr + COLUMNS * row
    worst, at = _smallest_where_largest(sizes_ptr, integers_ptr, begin, end, BLOCK)
    _keep_larger(sizes, integers + WORST_AT, worst, at)
    back, at = _smallest_where_largest(
        sizes_ptr + pieces, integers_ptr + 3 * pieces, begin, end, BLOCK
    )
    _keep_larger(sizes + 1, integers + BACK_AT, back, at)
    _keep_range(sizes_ptr, pieces, begin, end, sizes + LOWEST, sizes + LOWEST + 1, BLOCK)
    first = _smallest(integers_ptr + pieces, begin, end, BLOCK)
    tl.store(integers + HALF_FIRST, tl.minimum(tl.load(integers + HALF_FIRST), first))
    first = _smallest(integers_ptr + 2 * pieces, begin, end, BLOCK)
    tl.store(integers + ONE_FIRST, tl.minimum(tl.load(integers + ONE_FIRST), first))
    lane = tl.arange(0, BLOCK)
    reach = tl.full((BLOCK,), -1, tl.int64)
    for low in range(begin, end, BLOCK):
        value = tl.load(integers_ptr + 4 * pieces + low + lane, mask=low + lane < end, other=-1)
        reach = tl.maximum(reach, value)
    tl.store(integers + REACH, tl.maximum(tl.load(integers + REACH), tl.max(reach, 0)))
    for column in tl.static_range(3):  # beyond 1/2, beyond 1, steps back
        count, _ = _sum_and_high(integers_ptr + (5 + column) * pieces, begin, end, BLOCK)
        _add(integers + HALF + column, count)
    count, _ = _sum_and_high(integers_ptr + 8 * pieces, begin, end, BLOCK)
    _add(integers + CLIPPED, count)
    for column in tl.static_range(3):  # signed, small squares, large squares
        low_part, high_part = _sum_and_high(integers_ptr + (9 + column) * pieces, begin, end, BLOCK)
        _add(integers + SIGNED_LOW + 2 * column, low_part)
        _add(integers + SIGNED_LOW + 2 * column + 1, high_part)


@triton.jit
def reduce_sets_kernel(
    table_ptr, bounds_ptr, programs, set_sizes_ptr, set_integers_ptr,
    row_sizes_ptr, row_integers_ptr,
    COLUMNS: tl.constexpr, SIZES: tl.constexpr, SETS: tl.constexpr, SET: tl.constexpr,
    SET_FIRST: tl.constexpr, SET_WORST_AT: tl.constexpr, SET_COUNT: tl.constexpr,
    BLOCK: tl.constexpr,
):  # fmt: skip
    """Add the sets of one stretch to the row of its span. bounds: int64 (rows + 1,), its pieces."""
    stretch = tl.program_id(0)
    begin = tl.load(bounds_ptr + stretch).to(tl.int32)
    end = tl.load(bounds_ptr + stretch + 1).to(tl.int32)
    row = tl.load(table_ptr + 5 * stretch + 4)
    sizes, integers = row_sizes_ptr + SIZES * row + SET, row_integers_ptr + COLUMNS * row
    for number in tl.static_range(SETS):
        firsts = set_integers_ptr + number * programs
        worst, at = _smallest_where_largest(
            set_sizes_ptr + number * programs, firsts + SETS * programs, begin, end, BLOCK
        )
        _keep_larger(sizes + number, integers + SET_WORST_AT + number, worst, at)
        earliest = _smallest(firsts, begin, end, BLOCK)
        target = integers + SET_FIRST + number
        tl.store(target, tl.minimum(tl.load(target), earliest))
        count, _ = _sum_and_high(firsts + 2 * SETS * programs, begin, end, BLOCK)
        _add(integers + SET_COUNT + number, count)
