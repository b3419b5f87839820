"""The measuring pass over rows of pairs in Triton: one read of the kernel's output.

A program takes a row: all patterns of the second argument for one of the first, in chunks. The
arithmetic is that of ``compiled``, comparison by comparison.
"""

from __future__ import annotations

import triton
import triton.language as tl

from gelu_verify.exhaustive.gpu_reference import tail

#: Regions, and bins of the histogram rounded up to a power of two.
REGIONS = tl.constexpr(8)
BINS_POWER = tl.constexpr(256)


@triton.jit
def _number(bits, IS_BF16: tl.constexpr):
    """Return a result as float64: bf16 comes as int16, whose subnormals a cast may lose."""
    if IS_BF16:
        return (bits.to(tl.int32) << 16).to(tl.float32, bitcast=True).to(tl.float64)
    else:
        return bits.to(tl.float32).to(tl.float64)


@triton.jit
def _beside(limit, distance):
    """Return ``limit + distance``, two units of float64 off a limit that may be a tie."""
    large = limit * 8388608.0
    upper = large - (large - limit)
    off = tl.maximum(tl.abs(distance), tl.abs(limit) * 4.440892098500626e-16)
    moved = tl.where(distance < 0.0, limit - off, limit + off)
    return tl.where(upper == limit, moved, limit + distance)


@triton.jit
def _sum(x, bias, constants, table, FORMULA: tl.constexpr, TERMS: tl.constexpr):
    """Return s = fl(x + bias) and f(x + bias) (``reference.of_sum``)."""
    s = x + bias
    virtual = s - x
    lost = (x - (s - virtual)) + (bias - virtual)
    size = tl.abs(s)
    near, far = tl.load(constants + 6), tl.load(constants + 7)
    q = tail(tl.minimum(size, far), table, FORMULA, TERMS)
    below = s * q
    value = tl.where(s < 0.0, below, s - below)
    # 5e-324 is subnormal, and a device may read it as 0: 2^-1000 is as far below every format.
    value = tl.where((value == 0.0) & (s < 0.0), -9.332636185032189e-302, value)
    gap = tl.where((lost == 0.0) | (s < far), lost - below, lost)
    gap = tl.where((lost == 0.0) & (gap == 0.0), -9.332636185032189e-302, gap)
    close = (s >= 4.0) & (tl.abs(gap) < s * 3.552713678800501e-15)
    value = tl.where(close, _beside(s, gap), value)
    half = _beside(s * 0.5, lost * 0.5 + tl.load(constants + 5) * s * s)
    value = tl.where(size < near, half, value)
    beyond = (size >= far) | (s == 0.0) | (s != s)
    # The sign of s alone: a literal -0.0 is +0.0 in compiled code.
    signed_zero = ((s.to(tl.int64, bitcast=True) >> 63) << 63).to(tl.float64, bitcast=True)
    closed = tl.where(s < 0.0, signed_zero, s)
    right = (s >= far) & (size < float("inf"))
    closed = tl.where(right, _beside(s, tl.where(lost != 0.0, lost, gap)), closed)
    return s, tl.where(beyond, closed, value)


@triton.jit
def _region(s, constants):
    """Return the region code of s (``Regions.codes``), -1 where it is not finite."""
    size = tl.abs(s)
    code = tl.full(s.shape, 1, tl.int32)
    code += (s >= tl.load(constants + 10)).to(tl.int32)
    code += (s >= tl.load(constants + 11)).to(tl.int32)
    code += (s >= tl.load(constants + 12)).to(tl.int32)
    code += (s > tl.load(constants + 13)).to(tl.int32)
    in_last = (s >= tl.load(constants + 14)) & (s > tl.load(constants + 13))
    code += in_last.to(tl.int32)
    code = tl.where(s <= tl.load(constants + 9), 0, code)
    code = tl.where(size < 0.000244140625, 7, code)
    return tl.where(size < float("inf"), code, -1)


@triton.jit
def _found(number, mask, size, column, out, base):
    """Add to a record (count, first, worst, place of the worst) of the row; int64 and float64.

    number: how many of mask hold. out: (int64 pointer to count, first, place; float64 pointer to
    the worst), initialised.
    """
    integers, worst_ptr = out
    if number > 0:
        first = tl.min(tl.where(mask, column, 65536), 0).to(tl.int64)
        worst = tl.max(tl.where(mask, size, -1.0), 0)
        place = tl.min(tl.where(mask & (size == worst), column, 65536), 0).to(tl.int64)
        tl.store(integers + base * 3, tl.load(integers + base * 3) + number)
        known = tl.load(integers + base * 3 + 1)
        tl.store(integers + base * 3 + 1, tl.where(known < 0, first, known))
        if worst > tl.load(worst_ptr + base):
            tl.store(worst_ptr + base, worst)
            tl.store(integers + base * 3 + 2, place)


@triton.jit
def rows_kernel(
    actual_ptr, left_ptr, right_ptr, codes_ptr, table, scales_ptr, constants, first,
    sums_ptr, histogram_ptr, found_ptr, worst_ptr, flagged_ptr, counter_ptr, capacity,
    MODE: tl.constexpr, FORMULA: tl.constexpr, TERMS: tl.constexpr, LOWEST_BIN: tl.constexpr,
    BINS: tl.constexpr, BLOCK: tl.constexpr, IS_BF16: tl.constexpr,
):  # fmt: skip
    """Measure one row.

    MODE: 0 a product whose first factor is f, 1 one whose second is f', 2 a sum.
    found, worst: int64 (rows, 12, 3) and float64 (rows, 12): of 8 regions (all elements), of errors
    beyond 1/2 and beyond 1 ULP, of zeros of the wrong sign, all and judged. sums: int64 (8, 5):
    count, signed errors, squares small and large, clipped; histogram: int32 (8, 256).
    flagged: int64 (capacity,) indices; counter: int64 (2,): flagged, finite.
    """
    row = tl.program_id(0)
    pattern = first + row
    left = tl.load(left_ptr + pattern)
    overflow, flag_from, width = (
        tl.load(constants), tl.load(constants + 1), tl.load(constants + 2)
    )  # fmt: skip
    half, one = tl.load(constants + 3), tl.load(constants + 4)
    lane = tl.arange(0, BLOCK)
    bins = tl.zeros((REGIONS * BINS_POWER,), tl.int32)
    out = (found_ptr + row * 36, worst_ptr + row * 12)
    for chunk in range(65536 // BLOCK):
        column = chunk * BLOCK + lane
        right = tl.load(right_ptr + column)
        if MODE == 2:
            s, y = _sum(left, right, constants, table, FORMULA, TERMS)
            code = _region(s, constants)
        else:
            y = left * right
            s = left if MODE == 0 else right
            own = pattern + tl.zeros((BLOCK,), tl.int32) if MODE == 0 else column
            packed = tl.load(codes_ptr + own)
            # Four times the code of the region, plus 1 where float64 decides.
            code = packed >> 2
        if MODE == 2:
            sure = (tl.abs(s) < tl.load(constants + 8)) | (s >= 4.0)
        else:
            sure = (packed & 1) == 1
        index = row.to(tl.int64) * 65536 + column
        got = _number(tl.load(actual_ptr + index), IS_BF16)
        # Not the bits without their sign: that becomes a float's |y|, which may give NaN a sign
        # again, and an index of up to 4095.
        scale = tl.load(scales_ptr + ((y.to(tl.int64, bitcast=True) >> 52) & 0x7FF))
        error = (got - y) * scale
        size = tl.abs(error)
        due = tl.abs(y) < overflow
        is_infinite = tl.abs(got) == float("inf")
        right_kind = ((got != got) & (y != y)) | (is_infinite & (got * y > 0.0))
        both = due & (tl.abs(got) < float("inf"))
        negative = (got.to(tl.int64, bitcast=True) ^ y.to(tl.int64, bitcast=True)) < 0
        is_zero = got == 0.0
        wrong_zero = both & is_zero & (size <= 0.5) & negative
        opposite = ((got > 0.0) != (y > 0.0)) & (tl.abs(y) * scale > 0.5)
        odd = tl.where(is_zero, size > 0.5, opposite)
        near_half, near_one = tl.abs(size - half) <= width, tl.abs(size - one) <= width
        doubtful = (sure == 0) & (near_half | near_one)
        flag = both & (odd | doubtful | (size >= flag_from))
        flag = flag | ((due == 0) & (right_kind == 0)) | (due & (both == 0))
        judged = both & (code >= 0)
        beyond_half = judged & (size > half) & (sure | (near_half == 0))
        beyond_one = judged & (size > one) & (sure | (near_one == 0))
        zero_judged = wrong_zero & (code >= 0)
        # Four counts, at most BLOCK each, in one sum: sums over a block are what takes the time.
        some = beyond_half.to(tl.int64) + (beyond_one.to(tl.int64) << 16)
        some += (wrong_zero.to(tl.int64) << 32) + (zero_judged.to(tl.int64) << 48)
        some = tl.sum(some, 0)
        _found(some & 0xFFFF, beyond_half, size, column, out, 8)
        _found((some >> 16) & 0xFFFF, beyond_one, size, column, out, 9)
        _found((some >> 32) & 0xFFFF, wrong_zero, size, column, out, 10)
        _found(some >> 48, zero_judged, size, column, out, 11)
        clip = tl.minimum(size, 16777216.0)
        # Rounded to integers by adding 1.5·2^52; below 2^51, as are 2^24·2^20 and 2^48/16.
        magic = 6755399441055744.0
        signed = ((tl.where(error < 0.0, -clip, clip) * 1048576.0 + magic) - magic).to(tl.int64)
        is_small = size <= 256.0
        small = tl.where(is_small, size * size * 1048576.0, 0.0)
        small = ((small + magic) - magic).to(tl.int64)
        large = tl.where(is_small, 0.0, clip * clip * 0.0625)
        large = ((large + magic) - magic).to(tl.int64)
        # Neighbours are of one region but at its borders, so that most chunks have one or two.
        lowest = tl.min(tl.where(judged, code, REGIONS), 0)
        highest = tl.max(tl.where(judged, code, -1), 0)
        for region in range(lowest, highest + 1):
            mine = judged & (code == region)
            number = tl.sum(mine.to(tl.int64), 0)
            if number > 0:
                _found(number, mine, size, column, out, region)
                base = sums_ptr + region * 5
                tl.atomic_add(base, number)
                tl.atomic_add(base + 1, tl.sum(tl.where(mine, signed, 0), 0))
                tl.atomic_add(base + 2, tl.sum(tl.where(mine, small, 0), 0))
                tl.atomic_add(base + 3, tl.sum(tl.where(mine, large, 0), 0))
                clipped = mine & (size > 16777216.0)
                tl.atomic_add(base + 4, tl.sum(clipped.to(tl.int64), 0))
        slot = (size.to(tl.int64, bitcast=True) >> 50) - LOWEST_BIN
        slot = tl.minimum(tl.maximum(slot, 0), BINS - 1).to(tl.int32)
        # The last bin of a region is no bin of the histogram: it takes what is not counted.
        slot = tl.where(judged, code * BINS_POWER + slot, BINS_POWER - 1)
        bins += tl.histogram(slot, REGIONS * BINS_POWER)
        chosen = flag.to(tl.int32)
        both_counts = tl.sum(chosen + ((code >= 0).to(tl.int32) << 16), 0)
        tl.atomic_add(counter_ptr + 1, (both_counts >> 16).to(tl.int64))
        number = (both_counts & 0xFFFF).to(tl.int64)
        if number > 0:
            place = tl.atomic_add(counter_ptr, number) + tl.cumsum(chosen, 0) - chosen
            tl.store(flagged_ptr + place, index, mask=flag & (place < capacity))
    cells = tl.arange(0, REGIONS * BINS_POWER)
    tl.atomic_add(histogram_ptr + cells, bins, mask=bins > 0)
