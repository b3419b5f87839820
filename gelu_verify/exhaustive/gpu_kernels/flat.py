"""Flat pieces: compared with what is due there as integers, with one read of 16 bytes a thread.

Almost every piece holds just what is due, +0 for -0 throughout, or NaN throughout; three running
values tell. Only another piece is read again, to count what it holds.
"""

from __future__ import annotations

import triton
import triton.language as tl

from gelu_verify.exhaustive.gpu_kernels.table import stretch_of

MAGNITUDE = tl.constexpr(0x7FFFFFFF)
INFINITY = tl.constexpr(0x7F800000)


@triton.jit
def _seen(got, expected, mask, differs, filled, smallest):
    """Add some results to what differs from the due patterns, what is not +0, and the smallest
    magnitude.
    """
    differs |= tl.where(mask, got ^ expected, 0)
    filled |= tl.where(mask, got, 0)
    smallest = tl.minimum(smallest, tl.where(mask, got & MAGNITUDE, MAGNITUDE))
    return differs, filled, smallest


@triton.jit
def _scan(source, skip, end, due, slope, BLOCK: tl.constexpr):
    """Read elements ``skip`` to ``end - 1``; tell whether any is not due, not +0, not a NaN.

    source: aligned to 16 elements. due + slope·n is due at element n, slope 0 or 1.
    """
    lane = tl.arange(0, BLOCK)
    due_here = due + slope * lane
    differs = tl.zeros((BLOCK,), tl.int32)
    filled = tl.zeros((BLOCK,), tl.int32)
    smallest = tl.full((BLOCK,), MAGNITUDE, tl.int32)
    mask = (lane >= skip) & (lane < end)
    got = tl.load(source + lane, mask=mask, other=0)
    differs, filled, smallest = _seen(got, due_here, mask, differs, filled, smallest)
    whole = end // BLOCK
    for chunk in range(1, whole):  # without masks: four elements a load
        got = tl.load(source + chunk * BLOCK + lane)
        differs |= got ^ (due_here + slope * (chunk * BLOCK))
        filled |= got
        smallest = tl.minimum(smallest, got & MAGNITUDE)
    if (whole > 0) & (end > whole * BLOCK):
        at = whole * BLOCK + lane
        mask = at < end
        got = tl.load(source + at, mask=mask, other=0)
        differs, filled, smallest = _seen(got, due + slope * at, mask, differs, filled, smallest)
    any_differs = tl.max((differs != 0).to(tl.int32), 0)
    any_filled = tl.max((filled != 0).to(tl.int32), 0)
    return any_differs > 0, any_filled > 0, tl.min(smallest, 0) <= INFINITY


@triton.jit
def _count(source, skip, end, due, slope, kind, BLOCK: tl.constexpr):
    """Count, of elements ``skip`` to ``end - 1``, +0 for -0, NaN, and others that are not due.

    Returns the three counts, the first +0, the first and the last NaN, as numbers of elements.
    """
    lane = tl.arange(0, BLOCK)
    other = tl.zeros((BLOCK,), tl.int32)
    zeros = tl.zeros((BLOCK,), tl.int32)
    nans = tl.zeros((BLOCK,), tl.int32)
    zero_first = tl.full((BLOCK,), MAGNITUDE, tl.int32)
    nan_first = tl.full((BLOCK,), MAGNITUDE, tl.int32)
    nan_last = tl.full((BLOCK,), -1, tl.int32)
    for low in range(0, end, BLOCK):
        at = low + lane
        mask = (at >= skip) & (at < end)
        got = tl.load(source + at, mask=mask, other=0)
        nan = ((got & MAGNITUDE) > INFINITY) & mask
        zero = (got == 0) & (kind == 0) & mask
        wrong = (got != due + slope * at) | (kind == 3)
        other += (wrong & mask & (~zero) & (~nan)).to(tl.int32)
        zeros += zero.to(tl.int32)
        nans += nan.to(tl.int32)
        zero_first = tl.minimum(zero_first, tl.where(zero, at, MAGNITUDE))
        nan_first = tl.minimum(nan_first, tl.where(nan, at, MAGNITUDE))
        nan_last = tl.maximum(nan_last, tl.where(nan, at, -1))
    others, zero_count, nan_count = tl.sum(other, 0), tl.sum(zeros, 0), tl.sum(nans, 0)
    firsts = tl.min(zero_first, 0), tl.min(nan_first, 0)
    return others, zero_count, nan_count, firsts[0], firsts[1], tl.max(nan_last, 0)


@triton.jit
def _steps_back(source, start, first, kind):
    """Tell whether the first of a piece is out of order with the one before it, of another zone."""
    has_before = (start > first) & (start != 2147483648) & (kind != 3)
    before = tl.load(source - has_before.to(tl.int32)).to(tl.float32, bitcast=True)
    here = tl.load(source).to(tl.float32, bitcast=True)
    step = tl.where((kind == 2) & (start >= 2147483648), before - here, here - before)
    return (step < 0.0) & (step > -3.5e38) & has_before


@triton.jit
def flat_kernel(
    actual_ptr, table_ptr, rows, first: tl.int64, integers_ptr, other_ptr,
    IDENTITY: tl.constexpr, HALF: tl.constexpr, PIECE: tl.constexpr, BLOCK: tl.constexpr,
    COLUMNS: tl.constexpr, ZERO_FIRST: tl.constexpr, NAN_FIRST: tl.constexpr, ZERO: tl.constexpr,
    NAN: tl.constexpr, REACH: tl.constexpr,
):  # fmt: skip
    """Compare a flat piece with what is due there, and add +0 for -0 and NaN to its row.

    kinds: 0 flat zero, 1 flat identity, 2 flat half, 3 NaN. other_ptr: int32 (pieces,), 1 where a
    piece holds anything else: nothing of it is added then.
    IDENTITY, HALF: the patterns due there, 0 where they depend on x.
    """
    piece = tl.program_id(0)
    stretch = stretch_of(piece.to(tl.int64), table_ptr, rows)
    kind = tl.load(stretch + 3).to(tl.int32)
    start = tl.load(stretch) + (piece - tl.load(stretch + 2)) * PIECE
    count = tl.minimum(tl.load(stretch + 1) - start, PIECE).to(tl.int32)
    # Loads of 16 bytes begin at multiples of them: elements are numbered from the one before.
    aligned = ((start - first) // 16) * 16
    skip = (start - first - aligned).to(tl.int32)
    end = skip + count
    source = actual_ptr + aligned
    bits = (first + aligned).to(tl.int32)
    due = tl.where(kind == 1, bits + 0, bits - 8388608)
    slope = 1
    if IDENTITY != 0:
        due = tl.where(kind == 1, IDENTITY, HALF)
        slope = 0
    due = tl.where(kind == 0, -2147483648, due)
    slope = tl.where(kind == 0, 0, slope)

    differs, filled, numbers = _scan(source, skip, end, due, slope, BLOCK)
    is_other = numbers & (kind == 3)
    if IDENTITY == 0:
        is_other = is_other | _steps_back(source + skip, start, first, kind)
    zero_count, nan_count = skip * 0, skip * 0
    zero_first, nan_first, nan_last = skip, skip, end - 1
    if numbers & differs & (kind != 3):
        if (~filled) & (kind == 0):
            zero_count = count
        else:
            others, zero_count, nan_count, zero_first, nan_first, nan_last = _count(
                source, skip, end, due, slope, kind, BLOCK // 4
            )
            is_other = is_other | (others > 0)
    elif (~numbers) & (kind != 3):
        nan_count = count
    tl.store(other_ptr + piece, is_other.to(tl.int32))
    row = integers_ptr + COLUMNS * tl.load(stretch + 4)
    if is_other == 0:
        if zero_count > 0:
            tl.atomic_add(row + ZERO, zero_count.to(tl.int64))
            tl.atomic_min(row + ZERO_FIRST, start + (zero_first - skip))
        if nan_count > 0:
            tl.atomic_add(row + NAN, nan_count.to(tl.int64))
            tl.atomic_min(row + NAN_FIRST, start + (nan_first - skip))
            tl.atomic_max(row + REACH, start + (nan_last - skip))
        if kind == 2:
            tl.atomic_max(row + REACH, start + count - 1)
