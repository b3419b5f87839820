"""The measuring pass over rows of pairs in Triton: one read of the kernel's output.

A program takes a row: all patterns of the second argument for one of the first. The row falls into
segments whose columns share a region, whether float64 decides, and the way to the exact value. Each
thread keeps its own figures of a segment; what threads find is put together at its end.
The arithmetic is that of ``compiled``, comparison by comparison.
"""

from __future__ import annotations

import triton
import triton.language as tl

from gelu_verify.exhaustive.pairs.gpu_sums import in_middle, outside, region_of

#: Bins of the histogram rounded up to a power of two.
BINS_POWER = tl.constexpr(256)
#: Behind all columns.
BEHIND = tl.constexpr(65536)
#: 1.5·2^32 and 1.5·2^56: adding them rounds to multiples of 2^-20 and 2^4.
FINE, COARSE = tl.constexpr(6442450944.0), tl.constexpr(108086391056891904.0)
FINE_BITS, COARSE_BITS = tl.constexpr(0x41F8000000000000), tl.constexpr(0x4378000000000000)


@triton.jit
def _upper(value):
    """Return the upper half of the pattern of float64, int32."""
    return (value.to(tl.int64, bitcast=True) >> 32).to(tl.int32)


@triton.jit
def _number(bits, IS_BF16: tl.constexpr):
    """Return a result as float32: bf16 comes as int16, whose subnormals a cast may lose."""
    if IS_BF16:
        return (bits.to(tl.int32) << 16).to(tl.float32, bitcast=True)
    else:
        return bits.to(tl.float32)


@triton.jit
def _error(got32, y, PRECISION: tl.constexpr, LOWEST_FIELD: tl.constexpr):
    """Return the error in ULP: 1/ulp = 2^(p - 1 - e) has the exponent field of that."""
    field = tl.maximum((_upper(y) >> 20) & 0x7FF, LOWEST_FIELD)
    scale = ((PRECISION + 2045) - field) << 20
    scale = (scale.to(tl.int64) << 32).to(tl.float64, bitcast=True)
    return (got32.to(tl.float64) - y) * scale


@triton.jit
def _larger(size, at, worst, worst_at):
    """Replace sizes and where they are by larger ones: among equals the earlier stays."""
    larger = size > worst
    return tl.where(larger, size, worst), tl.where(larger, at, worst_at)


@triton.jit
def _found(number, first, worst, worst_at, integers, worst_ptr):
    """Add what is found in a segment to the record of its row; nothing where ``number`` is 0.

    integers: int64 (3,): count, first, place of the worst; worst: float64, initialised to -1.
    """
    if number > 0:
        top = tl.max(worst, 0)
        place = tl.min(tl.where(worst == top, worst_at, BEHIND), 0).to(tl.int64)
        early = tl.min(first, 0).to(tl.int64)
        tl.store(integers, tl.load(integers) + number)
        known = tl.load(integers + 1)
        tl.store(integers + 1, tl.where(known < 0, early, known))
        if top > tl.load(worst_ptr):
            tl.store(worst_ptr, top)
            tl.store(integers + 2, place)


@triton.jit
def _segment(
    row, start, stop, source, left, right_ptr, code, sure, middle, table, constants, sums_ptr,
    histogram_ptr, found_ptr, worst_ptr, flagged_ptr, counter_ptr, capacity,
    IS_SUM: tl.constexpr, FORMULA: tl.constexpr, TERMS: tl.constexpr, LOWEST_BIN: tl.constexpr,
    BINS: tl.constexpr, BLOCK: tl.constexpr, IS_BF16: tl.constexpr, PRECISION: tl.constexpr,
    LOWEST_FIELD: tl.constexpr,
):  # fmt: skip
    """Measure the columns ``start`` to ``stop - 1`` of one row, whose results are at ``source``."""
    overflow, tiny = tl.load(constants), tl.load(constants + 1)
    flag_from, curvature = tl.load(constants + 2), tl.load(constants + 3)
    # An error within [from, to] of a plain limit is open; where float64 decides, none is.
    limits = constants + tl.where(sure, 8, 4)
    half_from, half_to = tl.load(limits), tl.load(limits + 1)
    one_from, one_to = tl.load(limits + 2), tl.load(limits + 3)
    worst = tl.full((BLOCK,), -1.0, tl.float64)
    worst_at = tl.full((BLOCK,), BEHIND, tl.int32)
    zero_worst = tl.full((BLOCK,), -1.0, tl.float64)
    zero_worst_at = tl.full((BLOCK,), BEHIND, tl.int32)
    half_first = tl.full((BLOCK,), BEHIND, tl.int32)
    one_first = tl.full((BLOCK,), BEHIND, tl.int32)
    zero_first = tl.full((BLOCK,), BEHIND, tl.int32)
    plain = tl.zeros((BLOCK,), tl.int32)
    odds = tl.zeros((BLOCK,), tl.int32)
    signed = tl.zeros((BLOCK,), tl.int64)
    small_square = tl.zeros((BLOCK,), tl.int64)
    large_square = tl.zeros((BLOCK,), tl.int64)
    bins = tl.zeros((BINS_POWER,), tl.int32)
    for low in range((start // BLOCK) * BLOCK, stop, BLOCK):
        at = low + tl.arange(0, BLOCK)
        mask = (at >= start) & (at < stop)
        right = tl.load(right_ptr + at)
        if IS_SUM:
            if middle:
                y = in_middle(left, right, table, FORMULA, TERMS)
            else:
                y = outside(left, right, curvature)
        else:
            y = left * right
        got32 = _number(tl.load(source + at), IS_BF16)
        bits = got32.to(tl.int32, bitcast=True)
        magnitude = bits & 0x7FFFFFFF
        error = _error(got32, y, PRECISION, LOWEST_FIELD)
        size = tl.abs(error)
        due = tl.abs(y) < overflow
        rounds_to_zero = tl.abs(y) <= tiny
        is_zero = magnitude == 0
        opposite = (bits ^ _upper(y)) < 0
        judged = due & (magnitude < 0x7F800000) & mask & (code >= 0)
        beyond_half = size > half_to
        beyond_one = size > one_to
        # NaN is due for NaN, an infinity of its sign for what overflows.
        nan_is_right = (magnitude > 0x7F800000) & (y != y)
        infinity_is_right = (magnitude == 0x7F800000) & (y == y) & (~opposite)
        doubtful = ((size >= half_from) & (~beyond_half)) | ((size >= one_from) & (~beyond_one))
        odd = (is_zero | opposite) & (~rounds_to_zero)
        flag = (odd | doubtful | (~(size < flag_from))) & due
        flag = (flag | (~(due | nan_is_right | infinity_is_right))) & mask
        beyond_half = beyond_half & judged
        beyond_one = beyond_one & judged
        wrong_zero = is_zero & opposite & rounds_to_zero & mask

        usable = tl.where(judged, error, 0.0)
        size = tl.where(judged, size, 0.0)
        worst, worst_at = _larger(tl.where(judged, size, -1.0), at, worst, worst_at)
        zero_size = tl.where(wrong_zero, tl.abs(error), -1.0)
        zero_worst, zero_worst_at = _larger(zero_size, at, zero_worst, zero_worst_at)
        half_first = tl.minimum(half_first, tl.where(beyond_half, at, BEHIND))
        one_first = tl.minimum(one_first, tl.where(beyond_one, at, BEHIND))
        zero_first = tl.minimum(zero_first, tl.where(wrong_zero, at, BEHIND))
        is_huge = size > 16777216.0
        plain += tl.where(beyond_half, 1, 0) + tl.where(beyond_one, 1 << 16, 0)
        odds += tl.where(wrong_zero, 1, 0) + tl.where(is_huge, 1 << 16, 0)
        clipped = tl.where(is_huge, 16777216.0, usable)
        clipped = tl.where(is_huge & (_upper(usable) < 0), -16777216.0, clipped)
        signed += (clipped + FINE).to(tl.int64, bitcast=True) - FINE_BITS
        square = clipped * clipped
        is_small = size <= 256.0
        fine = (square + FINE).to(tl.int64, bitcast=True) - FINE_BITS
        coarse = (square + COARSE).to(tl.int64, bitcast=True) - COARSE_BITS
        small_square += tl.where(is_small, fine, 0)
        large_square += tl.where(is_small, 0, coarse)
        slot = (_upper(size) >> 18) - LOWEST_BIN
        slot = tl.minimum(tl.maximum(slot, 0), BINS - 1)
        bins += tl.histogram(tl.where(judged, slot, BINS_POWER - 1), BINS_POWER)
        chosen = flag.to(tl.int32)
        number = tl.sum(chosen, 0).to(tl.int64)
        if number > 0:
            place = (
                tl.atomic_add(counter_ptr, number, sem="relaxed") + tl.cumsum(chosen, 0) - chosen
            )
            index = row.to(tl.int64) * 65536 + at
            tl.store(flagged_ptr + place, index, mask=flag & (place < capacity))

    # Every thread has two counts of less than 2^15 in one number, and a segment at most 2^16.
    plain_sums = tl.sum((plain & 0xFFFF).to(tl.int64) + ((plain >> 16).to(tl.int64) << 32), 0)
    odd_sums = tl.sum((odds & 0xFFFF).to(tl.int64) + ((odds >> 16).to(tl.int64) << 32), 0)
    zeros = odd_sums & 0xFFFFF
    _found(plain_sums & 0xFFFFF, half_first, worst, worst_at, found_ptr + 24, worst_ptr + 8)
    _found(plain_sums >> 32, one_first, worst, worst_at, found_ptr + 27, worst_ptr + 9)
    _found(zeros, zero_first, zero_worst, zero_worst_at, found_ptr + 30, worst_ptr + 10)
    if code >= 0:
        _found(zeros, zero_first, zero_worst, zero_worst_at, found_ptr + 33, worst_ptr + 11)
        slot = tl.arange(0, BINS_POWER)
        bins = tl.where(slot < BINS, bins, 0)
        count = tl.sum(bins, 0).to(tl.int64)
        _found(count, worst_at, worst, worst_at, found_ptr + code * 3, worst_ptr + code)
        base = sums_ptr + code * 5
        tl.atomic_add(base, count, sem="relaxed")
        tl.atomic_add(base + 1, tl.sum(signed, 0), sem="relaxed")
        tl.atomic_add(base + 2, tl.sum(small_square, 0), sem="relaxed")
        tl.atomic_add(base + 3, tl.sum(large_square, 0), sem="relaxed")
        tl.atomic_add(base + 4, odd_sums >> 32, sem="relaxed")
        tl.atomic_add(counter_ptr + 1, (stop - start).to(tl.int64), sem="relaxed")
        target = histogram_ptr + code * BINS_POWER + slot
        tl.atomic_add(target, bins, mask=bins > 0, sem="relaxed")


@triton.jit
def rows_kernel(
    actual_ptr, left_ptr, right_ptr, codes_ptr, starts_ptr, stride, segments, table, constants,
    first, sums_ptr, histogram_ptr, found_ptr, worst_ptr, flagged_ptr, counter_ptr, capacity,
    MODE: tl.constexpr, FORMULA: tl.constexpr, TERMS: tl.constexpr, LOWEST_BIN: tl.constexpr,
    BINS: tl.constexpr, BLOCK: tl.constexpr, IS_BF16: tl.constexpr, PRECISION: tl.constexpr,
    LOWEST_FIELD: tl.constexpr,
):  # fmt: skip
    """Measure one row.

    MODE: 0 a product whose first factor is f, 1 one whose second is f', 2 a sum.
    starts: int32, ``segments`` and one more from ``row·stride`` on: where segments begin.
    found, worst: int64 (rows, 12, 3) and float64 (rows, 12): of 8 regions (all elements), of errors
    beyond 1/2 and beyond 1 ULP, of zeros of the wrong sign, all and judged. sums: int64 (8, 5):
    count, signed errors, squares small and large, clipped; histogram: int32 (8, 256).
    flagged: int64 (capacity,) indices; counter: int64 (2,): flagged, finite.
    """
    row = tl.program_id(0)
    pattern = first + row
    left = tl.load(left_ptr + pattern)
    source = actual_ptr + row.to(tl.int64) * 65536
    for segment in range(segments):
        start = tl.load(starts_ptr + row * stride + segment)
        stop = tl.load(starts_ptr + row * stride + segment + 1)
        if stop > start:
            # Four times the code of the region, plus 1 where float64 decides.
            middle = stop > start
            if MODE == 2:
                s = left + tl.load(right_ptr + start)
                size = tl.abs(s)
                code = region_of(s, constants + 12)
                sure = (size < tl.load(constants + 18)) | (s >= 4.0)
                middle = (size >= 9.094947017729282e-13) & (size < 64.0)
            else:
                packed = tl.load(codes_ptr + tl.where(MODE == 0, pattern, start))
                code = packed >> 2
                sure = (packed & 1) == 1
            _segment(
                row, start, stop, source, left, right_ptr, code, sure, middle, table, constants,
                sums_ptr, histogram_ptr, found_ptr + row * 36, worst_ptr + row * 12, flagged_ptr,
                counter_ptr, capacity,
                MODE == 2, FORMULA, TERMS, LOWEST_BIN, BINS, BLOCK, IS_BF16, PRECISION,
                LOWEST_FIELD,
            )  # fmt: skip
