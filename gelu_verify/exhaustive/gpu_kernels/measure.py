"""Error figures of pieces: one read of the kernel's output, inputs made from the counter.

A piece is measured in parts, each of a few elements a thread, and every thread keeps its own
figures of them in registers: what threads find is put together once a piece.
"""

from __future__ import annotations

import triton
import triton.language as tl

from gelu_verify.exhaustive.gpu_kernels.elements import elements, piece_of

#: Columns that ``measure_kernel`` leaves of a piece, int64 (12, pieces): four patterns (of the
#: largest error, first beyond 1/2 and 1 ULP, largest step back), reach, then counts and sums.
PIECE_COLUMNS = 12
NONE = tl.constexpr(4294967296)
#: Above all numbers of elements of a piece.
BEHIND = tl.constexpr(1 << 30)
#: 1.5·2^52: adding it rounds to an integer, which the difference of the patterns is.
MAGIC = tl.constexpr(6755399441055744.0)
MAGIC_BITS = tl.constexpr(0x4338000000000000)


@triton.jit
def _whole(value):
    """Round float64, at most 2^51 in size, to int64."""
    return (value + MAGIC).to(tl.int64, bitcast=True) - MAGIC_BITS


@triton.jit
def _larger(size, at, worst, worst_at):
    """Replace sizes and where they are by larger ones: among equals the earlier stays."""
    larger = size > worst
    return tl.where(larger, size, worst), tl.where(larger, at, worst_at)


@triton.jit
def _farther(error, finite, at, lowest, highest, worst_at):
    """Widen the range of signed errors, and keep where the largest of either sign is.

    The largest size is known from the range: it takes no registers of its own.
    """
    farther = finite & (tl.abs(error) > _worst(lowest, highest))
    lowest = tl.where(finite & (error < lowest), error, lowest)
    highest = tl.where(finite & (error > highest), error, highest)
    return lowest, highest, tl.where(farther, at, worst_at)


@triton.jit
def _worst(lowest, highest):
    return tl.maximum(tl.maximum(highest, -lowest), 0.0)


@triton.jit
def _largest(worst, worst_at):
    """Return the largest size and the first place of it, ``BEHIND`` if all are 0."""
    top = tl.max(worst, 0)
    return top, tl.min(tl.where(worst == top, worst_at, BEHIND), 0)


@triton.jit
def _pattern(start, at):
    return tl.where(at < BEHIND, start + at, NONE)


@triton.jit
def _field(counts, SHIFT: tl.constexpr, MASK: tl.constexpr):
    return ((counts >> SHIFT) & MASK).to(tl.int64)


@triton.jit
def _store_counts(marks, out, selected_ptr, far_ptr, pieces):
    """Add up and store the counts that every thread has in fields of five bits."""
    # Four sums in one, each at most 2^15: then two more.
    four = _field(marks, 0, 31) + (_field(marks, 5, 31) << 16)
    four += (_field(marks, 10, 31) << 32) + (_field(marks, 15, 31) << 48)
    four = tl.sum(four, 0)
    two = tl.sum(_field(marks, 20, 31) + (_field(marks, 25, 31) << 16), 0)
    tl.store(out + 5 * pieces, _field(four, 0, 0xFFFF))
    tl.store(out + 6 * pieces, _field(four, 16, 0xFFFF))
    tl.store(out + 7 * pieces, _field(four, 32, 0xFFFF))
    tl.store(selected_ptr, _field(four, 48, 0xFFFF).to(tl.int32))
    tl.store(far_ptr, _field(two, 0, 0xFFFF).to(tl.int32))
    tl.store(out + 8 * pieces, _field(two, 16, 0xFFFF))


@triton.jit
def measure_kernel(
    actual_ptr, table_ptr, rows, first: tl.int64, coefficients_ptr, constants_ptr,
    sizes_ptr, integers_ptr, selected_ptr, far_ptr, histogram_ptr, pieces,
    FORMULA: tl.constexpr, DERIVATIVE: tl.constexpr, SERIES: tl.constexpr, TERMS: tl.constexpr,
    LOWEST_BIN: tl.constexpr, BINS: tl.constexpr, BINS_POWER: tl.constexpr,
    PIECE: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """Measure one piece of at most PIECE patterns, BLOCK at a time; PIECE < 32·BLOCK and 2^15.

    sizes: float64 (4, pieces): largest error, largest step back, lowest and highest signed error
    (infinities where no result is finite). integers: int64 (PIECE_COLUMNS,
    pieces). selected, far: int32 (pieces,), how many elements are handed over, and how many are
    beyond 4 ULP. histogram: int32 (spans, BINS_POWER).
    """
    piece = tl.program_id(0)
    stretch, start, count, kind = piece_of(piece, table_ptr, rows, PIECE)
    lowest = tl.full((BLOCK,), float("inf"), tl.float64)
    highest = tl.full((BLOCK,), float("-inf"), tl.float64)
    worst_back = tl.zeros((BLOCK,), tl.float64)
    worst_at = tl.full((BLOCK,), BEHIND, tl.int32)
    back_at = tl.full((BLOCK,), BEHIND, tl.int32)
    half_first = tl.full((BLOCK,), BEHIND, tl.int32)
    one_first = tl.full((BLOCK,), BEHIND, tl.int32)
    reach = tl.full((BLOCK,), -1, tl.int32)
    marks = tl.zeros((BLOCK,), tl.int32)
    signed = tl.zeros((BLOCK,), tl.int64)
    small_square = tl.zeros((BLOCK,), tl.int64)
    large_square = tl.zeros((BLOCK,), tl.int64)
    bins = tl.zeros((BINS_POWER,), tl.int32)
    for low in range(0, count, BLOCK):
        mask, x, _, got32, error, back, half, one, far, selected = elements(
            start, low, count, kind, actual_ptr, first, coefficients_ptr, constants_ptr,
            FORMULA, DERIVATIVE, SERIES, TERMS, BLOCK,
        )  # fmt: skip
        at = low + tl.arange(0, BLOCK)
        finite = (tl.abs(error) < 1e300) & mask
        usable = tl.where(finite, error, 0.0)
        size = tl.abs(usable)
        lowest, highest, worst_at = _farther(error, finite, at, lowest, highest, worst_at)
        if DERIVATIVE == 0:
            worst_back, back_at = _larger(back, at, worst_back, back_at)
        half_first = tl.minimum(half_first, tl.where(half, at, BEHIND))
        one_first = tl.minimum(one_first, tl.where(one, at, BEHIND))
        if DERIVATIVE == 1:
            saturated = got32 == 1.0
        else:
            saturated = got32.to(tl.float64) == x
        saturated = tl.where(start >= 2147483648, got32 == 0.0, saturated)
        reach = tl.maximum(reach, tl.where((~saturated) & mask, at, -1))
        marks += tl.where(half, 1, 0) + tl.where(one, 1 << 5, 0)
        marks += tl.where(back > 0.0, 1 << 10, 0) + tl.where(selected, 1 << 15, 0)
        marks += tl.where(far, 1 << 20, 0) + tl.where(size > 16777216.0, 1 << 25, 0)
        # |error| in units of 2^-20 is at most 2^44; squares in those of 2^-20, beyond 256 ULP 2^4.
        clipped = tl.minimum(tl.maximum(usable, -16777216.0), 16777216.0)
        signed += _whole(clipped * 1048576.0)
        is_small = size <= 256.0
        square = _whole(clipped * clipped * tl.where(is_small, 1048576.0, 0.0625))
        small_square += tl.where(is_small, square, 0)
        large_square += tl.where(is_small, 0, square)
        slot = (size.to(tl.int64, bitcast=True) >> 50).to(tl.int32) - LOWEST_BIN
        slot = tl.minimum(tl.maximum(slot, 0), BINS - 1)
        bins += tl.histogram(tl.where(finite, slot, BINS_POWER - 1), BINS_POWER)

    out = integers_ptr + piece
    tl.store(sizes_ptr + 2 * pieces + piece, tl.min(lowest, 0))
    tl.store(sizes_ptr + 3 * pieces + piece, tl.max(highest, 0))
    top, top_at = _largest(_worst(lowest, highest), worst_at)
    tl.store(sizes_ptr + piece, top)
    tl.store(out, _pattern(start, top_at))
    top, top_at = _largest(worst_back, back_at)
    tl.store(sizes_ptr + pieces + piece, top)
    tl.store(out + 3 * pieces, _pattern(start, top_at))
    tl.store(out + pieces, _pattern(start, tl.min(half_first, 0)))
    tl.store(out + 2 * pieces, _pattern(start, tl.min(one_first, 0)))
    last = tl.max(reach, 0)
    tl.store(out + 4 * pieces, tl.where(last >= 0, start + last, -1))
    _store_counts(marks, out, selected_ptr + piece, far_ptr + piece, pieces)
    tl.store(out + 9 * pieces, tl.sum(signed, 0))
    tl.store(out + 10 * pieces, tl.sum(small_square, 0))
    tl.store(out + 11 * pieces, tl.sum(large_square, 0))
    slot = tl.arange(0, BINS_POWER)
    target = histogram_ptr + tl.load(stretch + 4) * BINS_POWER + slot
    tl.atomic_add(target, bins, mask=(bins > 0) & (slot < BINS))
