"""The measuring engine in Triton: one read of the kernel's output, inputs made from the counter.

A program takes a piece: consecutive patterns within one stretch, so that zone, region and binade
are those of the piece. It leaves the figures of the piece; ``reduce_kernel`` adds those of a
stretch to the row of its span. Columns are those of ``exhaustive.figures``.
"""

from __future__ import annotations

import triton
import triton.language as tl

from gelu_verify.exhaustive.gpu_reference import exact
from gelu_verify.exhaustive.gpu_sets import class_of, level, per_ulp_of

#: Columns that ``measure_kernel`` leaves of a piece, int64 (12, pieces): four patterns (of the
#: largest error, first beyond 1/2 and 1 ULP, largest step back), reach, then counts and sums.
PIECE_COLUMNS = 12
#: Stretches of one launch are fewer than 2^10.
SEARCH_STEPS = tl.constexpr(10)


@triton.jit
def _stretch_of(program, table_ptr, rows):
    """Return the pointer to the stretch that a piece is of, by bisection of their first pieces."""
    low = program * 0
    high = low + rows
    for _ in tl.static_range(SEARCH_STEPS):
        middle = (low + high) // 2
        here = tl.load(table_ptr + 5 * middle + 2) <= program
        low = tl.where(here, middle, low)
        high = tl.where(here, high, middle)
    return table_ptr + 5 * low


@triton.jit
def flat_kernel(
    actual_ptr, table_ptr, rows, first, integers_ptr, other_ptr,
    IDENTITY: tl.constexpr, HALF: tl.constexpr, BLOCK: tl.constexpr, CHUNKS: tl.constexpr,
    COLUMNS: tl.constexpr, ZERO_FIRST: tl.constexpr, NAN_FIRST: tl.constexpr, ZERO: tl.constexpr,
    NAN: tl.constexpr, REACH: tl.constexpr,
):  # fmt: skip
    """Compare a flat piece with what is due there, and add +0 for -0 and NaN to its row.

    kinds: 0 flat zero, 1 flat identity, 2 flat half, 3 NaN. other_ptr: int32 (pieces,), 1 where a
    piece holds anything else: nothing of it is added then.
    IDENTITY, HALF: the patterns due there, 0 where they depend on x.
    """
    piece = tl.program_id(0)
    stretch = _stretch_of(piece.to(tl.int64), table_ptr, rows)
    kind = tl.load(stretch + 3)
    start = tl.load(stretch) + (piece - tl.load(stretch + 2)) * (BLOCK * CHUNKS)
    count = tl.minimum(tl.load(stretch + 1) - start, BLOCK * CHUNKS).to(tl.int32)
    source = actual_ptr + (start - first)
    base = start.to(tl.int32)
    other = tl.zeros((BLOCK,), tl.int32)
    zeros = tl.zeros((BLOCK,), tl.int32)
    nans = tl.zeros((BLOCK,), tl.int32)
    far = BLOCK * CHUNKS
    zero_first = tl.full((BLOCK,), far, tl.int32)
    nan_first = tl.full((BLOCK,), far, tl.int32)
    nan_last = tl.full((BLOCK,), -1, tl.int32)
    for chunk in range(CHUNKS):
        lane = chunk * BLOCK + tl.arange(0, BLOCK)
        mask = lane < count
        got = tl.load(source + lane, mask=mask, other=0)
        bits = base + lane
        identity = bits if IDENTITY == 0 else tl.full((BLOCK,), IDENTITY, tl.int32)
        half = bits - 8388608 if HALF == 0 else tl.full((BLOCK,), HALF, tl.int32)
        expected = tl.where(kind == 1, identity, half)
        expected = tl.where(kind == 0, -2147483648, expected)
        nan = ((got & 0x7FFFFFFF) > 0x7F800000) & mask
        zero = (got == 0) & (kind == 0) & mask
        wrong = (got != expected) & mask & (~zero) & (~nan)
        other += (wrong | (mask & (~nan) & (kind == 3))).to(tl.int32)
        zeros += zero.to(tl.int32)
        nans += nan.to(tl.int32)
        zero_first = tl.minimum(zero_first, tl.where(zero, lane, far))
        nan_first = tl.minimum(nan_first, tl.where(nan, lane, far))
        nan_last = tl.maximum(nan_last, tl.where(nan, lane, -1))
    # The first of the span may be out of order with the one before it, of another zone.
    has_before = (start > first) & (start != 2147483648)
    before = tl.load(source - has_before.to(tl.int32)).to(tl.float32, bitcast=True)
    here = tl.load(source).to(tl.float32, bitcast=True)
    step = tl.where((kind == 2) & (start >= 2147483648), before - here, here - before)
    back = (step < 0.0) & (step > -3.5e38) & has_before & (kind != 3) & (IDENTITY == 0)
    is_other = (tl.sum(other, 0) > 0) | back
    tl.store(other_ptr + piece, is_other.to(tl.int32))
    row = integers_ptr + COLUMNS * tl.load(stretch + 4)
    zero_count = tl.sum(zeros, 0)
    nan_count = tl.sum(nans, 0)
    if is_other == 0:
        if zero_count > 0:
            tl.atomic_add(row + ZERO, zero_count.to(tl.int64))
            tl.atomic_min(row + ZERO_FIRST, start + tl.min(zero_first, 0))
        if (nan_count > 0) & (kind != 3):
            tl.atomic_add(row + NAN, nan_count.to(tl.int64))
            tl.atomic_min(row + NAN_FIRST, start + tl.min(nan_first, 0))
            tl.atomic_max(row + REACH, start + tl.max(nan_last, 0))
        if kind == 2:
            tl.atomic_max(row + REACH, start + count - 1)


@triton.jit
def _elements(
    piece, actual_ptr, table_ptr, rows, first, coefficients_ptr, constants_ptr,
    FORMULA: tl.constexpr, DERIVATIVE: tl.constexpr, SERIES: tl.constexpr, TERMS: tl.constexpr,
    BLOCK: tl.constexpr,
):  # fmt: skip
    """Return what is known of every element of a piece.

    stretch, start: pointer to the table's row, first pattern. mask; x, exact value and error in
    ULP, float64; got32; back: step back in ULP, 0 where none; marks: int64, bits 0, 16, 32, 48 for
    an error beyond 1/2 ULP, beyond 1 ULP, a step back, and selected, so that one sum counts all
    four; far: beyond 4 ULP and not selected.
    constants: float64 (16,), see ``gpu_engine``.
    """
    stretch = _stretch_of(piece.to(tl.int64), table_ptr, rows)
    start = tl.load(stretch) + (piece - tl.load(stretch + 2)) * BLOCK
    count = tl.minimum(tl.load(stretch + 1) - start, BLOCK).to(tl.int32)
    kind = tl.load(stretch + 3).to(tl.int32)
    lane = tl.arange(0, BLOCK)
    mask = lane < count
    bits = start.to(tl.int32) + lane
    x = bits.to(tl.float32, bitcast=True).to(tl.float64)
    source = actual_ptr + (start - first)
    got32 = tl.load(source + lane, mask=mask, other=0.0)
    got = got32.to(tl.float64)
    c2, c4 = tl.load(constants_ptr), tl.load(constants_ptr + 1)
    select_from, back_from = tl.load(constants_ptr + 2), tl.load(constants_ptr + 3)
    back_slack, open_width = tl.load(constants_ptr + 4), tl.load(constants_ptr + 9)
    y = exact(x, coefficients_ptr, c2, c4, FORMULA, DERIVATIVE, SERIES, TERMS)

    per_ulp = per_ulp_of(x, y, DERIVATIVE)
    error = tl.where(mask, (got - y) * per_ulp, 0.0)
    size = tl.abs(error)
    finite = size < 1e300
    half = finite & (size > 0.5 + open_width)
    one = finite & (size > 1.0 + open_width)
    far = finite & (size > 4.0 + open_width)
    selected = (size > select_from) | (tl.abs(size - 1.0) <= open_width)
    selected = selected | (tl.abs(size - 4.0) <= open_width)
    selected = selected | (~(far | ((got * y > 0.0) & finite)))
    near_half = tl.abs(size - 0.5) <= open_width
    back = tl.zeros((BLOCK,), tl.float64)
    if DERIVATIVE == 0:
        if SERIES:
            # RN(x/2 + x²·f''(0)/2): see Block._nearest_half.
            ties = (kind & 4) != 0
            m = bits & 0x7FFFFFFF
            due = tl.where(bits < 0, (m >> 1) | -2147483648, (m + 1) >> 1)
            half = tl.where(ties, finite & (got32.to(tl.int32, bitcast=True) != due), half)
            near_half = near_half & (~ties)
        ordered_from = tl.where(start > first, (kind & 2) >> 1, 1)
        ordered = mask & (lane >= ordered_from)
        before = tl.load(source + lane - 1, mask=ordered, other=0.0)
        step = tl.where(ordered, got - before.to(tl.float64), 0.0)
        step = tl.where((kind & 1) != 0, step, -step)
        back = tl.where((step > 0.0) & (step < 1e300), step * per_ulp, 0.0)
        selected = selected | ((back > back_from) & (step > tl.abs(x) * back_slack))
    selected = (selected | near_half) & mask
    half = half & mask & (~selected)
    one = one & mask & (~selected)
    marks = half.to(tl.int64) + (one.to(tl.int64) << 16)
    marks += ((back > 0.0).to(tl.int64) << 32) + (selected.to(tl.int64) << 48)
    far = far & mask & (~selected)
    return stretch, start, mask, x, y, got32, error, back, marks, far


@triton.jit
def measure_kernel(
    actual_ptr, table_ptr, rows, first, coefficients_ptr, constants_ptr,
    sizes_ptr, integers_ptr, selected_ptr, far_ptr, histogram_ptr, pieces,
    FORMULA: tl.constexpr, DERIVATIVE: tl.constexpr, SERIES: tl.constexpr, TERMS: tl.constexpr,
    LOWEST_BIN: tl.constexpr, BINS: tl.constexpr, BINS_POWER: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """Measure one piece of at most BLOCK patterns.

    sizes: float64 (2, pieces): largest error, largest step back. integers: int64 (PIECE_COLUMNS,
    pieces). selected, far: int32 (pieces,), how many elements are handed over, and how many are
    beyond 4 ULP. histogram: int32 (spans, BINS_POWER).
    """
    piece = tl.program_id(0)
    stretch, start, mask, x, _, got32, error, back, marks, far = _elements(
        piece, actual_ptr, table_ptr, rows, first, coefficients_ptr, constants_ptr,
        FORMULA, DERIVATIVE, SERIES, TERMS, BLOCK,
    )  # fmt: skip
    lane = tl.arange(0, BLOCK)
    size = tl.abs(error)
    finite = (size < 1e300) & mask
    worst = tl.max(tl.where(finite, size, 0.0), 0)
    worst_at = tl.min(tl.where(finite & (size == worst), lane, BLOCK), 0)
    worst_back = tl.max(back, 0)
    back_at = tl.min(tl.where((back == worst_back) & (back > 0.0), lane, BLOCK), 0)
    half_first = tl.min(tl.where((marks & 1) != 0, lane, BLOCK), 0)
    one_first = tl.min(tl.where((marks & 0x10000) != 0, lane, BLOCK), 0)
    if DERIVATIVE == 1:
        saturated = got32 == 1.0
    else:
        saturated = got32.to(tl.float64) == x
    saturated = tl.where(start >= 2147483648, got32 == 0.0, saturated)
    reach = tl.max(tl.where((~saturated) & mask, lane, -1), 0)
    counts = tl.sum(marks, 0)  # each at most 2^12

    tl.store(sizes_ptr + piece, worst)
    tl.store(sizes_ptr + pieces + piece, worst_back)
    tl.store(selected_ptr + piece, (counts >> 48).to(tl.int32))
    tl.store(far_ptr + piece, tl.sum(far.to(tl.int32), 0))
    out = integers_ptr + piece
    none: tl.constexpr = 4294967296
    tl.store(out, tl.where(worst_at < BLOCK, start + worst_at, none))
    tl.store(out + pieces, tl.where(half_first < BLOCK, start + half_first, none))
    tl.store(out + 2 * pieces, tl.where(one_first < BLOCK, start + one_first, none))
    tl.store(out + 3 * pieces, tl.where(back_at < BLOCK, start + back_at, none))
    tl.store(out + 4 * pieces, tl.where(reach >= 0, start + reach, -1))
    tl.store(out + 5 * pieces, counts & 0xFFFF)
    tl.store(out + 6 * pieces, (counts >> 16) & 0xFFFF)
    tl.store(out + 7 * pieces, (counts >> 32) & 0xFFFF)

    # Rounded to integers by adding 1.5·2^52: |error| in units of 2^-20 is at most 2^44.
    magic: tl.constexpr = 6755399441055744.0
    usable = tl.where(finite, error, 0.0)
    clipped = tl.minimum(tl.maximum(usable, -16777216.0), 16777216.0)
    signed = ((clipped * 1048576.0 + magic) - magic).to(tl.int64)
    small = tl.where(finite & (size <= 256.0), size, 0.0)
    square = ((small * small * 1048576.0 + magic) - magic).to(tl.int64)
    tl.store(out + 9 * pieces, tl.sum(signed, 0))
    tl.store(out + 10 * pieces, tl.sum(square, 0))
    over = tl.zeros((), tl.int64)
    large_square = tl.zeros((), tl.int64)
    if worst > 256.0:
        over = tl.sum((finite & (size > 16777216.0)).to(tl.int64), 0)
        large = tl.where(finite & (size > 256.0), tl.abs(clipped), 0.0)
        large_square = tl.sum(((large * large * 0.0625 + magic) - magic).to(tl.int64), 0)
    tl.store(out + 8 * pieces, over)
    tl.store(out + 11 * pieces, large_square)

    slot = (size.to(tl.int64, bitcast=True) >> 50) - LOWEST_BIN
    slot = tl.minimum(tl.maximum(slot, 0), BINS - 1).to(tl.int32)
    bin_counts = tl.histogram(tl.where(finite, slot, BINS_POWER - 1), BINS_POWER)
    bins = tl.arange(0, BINS_POWER)
    used = (bin_counts > 0) & (bins < BINS)
    row = tl.load(stretch + 4)
    tl.atomic_add(histogram_ptr + row * BINS_POWER + bins, bin_counts, mask=used)


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
    CLIPPED: tl.constexpr, SIGNED_LOW: tl.constexpr, BLOCK: tl.constexpr,
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
def sample_kernel(
    actual_ptr, first, begin, stop, integers_ptr, results_ptr, cells,
    COLUMNS: tl.constexpr, SAMPLES: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """Keep the result at every sample (rows, SAMPLES) whose pattern is in [begin, stop)."""
    cell = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = cell < cells
    column = (cell // SAMPLES) * COLUMNS + cell % SAMPLES
    at = tl.load(integers_ptr + column, mask=mask, other=4294967296)
    here = mask & (at >= begin) & (at < stop)
    got = tl.load(actual_ptr + (at - first), mask=here, other=0)
    tl.store(results_ptr + cell, got, mask=here)


@triton.jit
def select_kernel(
    actual_ptr, table_ptr, rows, first, coefficients_ptr, constants_ptr,
    members_ptr, places_ptr, patterns_ptr, tanh_ptr,
    FORMULA: tl.constexpr, DERIVATIVE: tl.constexpr, SERIES: tl.constexpr, TERMS: tl.constexpr,
    BLOCK: tl.constexpr, SETS: tl.constexpr,
):  # fmt: skip
    """Write the patterns (int32) of the selected elements of some pieces, in order.

    members, places: int64 (programs,): the piece, and where its first element goes. SETS: whether
    any element is beyond 4 ULP, and may be open.
    """
    program = tl.program_id(0)
    piece = tl.load(members_ptr + program)
    _, start, _, x, y, got32, _, _, marks, far = _elements(
        piece, actual_ptr, table_ptr, rows, first, coefficients_ptr, constants_ptr,
        FORMULA, DERIVATIVE, SERIES, TERMS, BLOCK,
    )  # fmt: skip
    chosen = (marks >> 48).to(tl.int32)
    if SETS:
        reason, _ = _sets_of(x, y, got32, far, constants_ptr, tanh_ptr, FORMULA, DERIVATIVE)
        chosen = tl.where(far & (reason < 0), 1, chosen)
    place = tl.load(places_ptr + program) + tl.cumsum(chosen, 0) - 1
    lane = tl.arange(0, BLOCK)
    tl.store(patterns_ptr + place, start.to(tl.int32) + lane, mask=chosen > 0)


@triton.jit
def _sets_of(
    x, y, got32, far, constants_ptr, tanh_ptr, FORMULA: tl.constexpr, DERIVATIVE: tl.constexpr
):  # fmt: skip
    """Return the sets of reason and class of far elements; a reason of -1 where one is open."""
    got = got32.to(tl.float64)
    reason = level(x, got, y, constants_ptr, tanh_ptr, FORMULA, DERIVATIVE)
    cls = class_of(got, y, constants_ptr)
    reason = tl.where(cls < 0, -1, reason)
    return reason, cls


@triton.jit
def set_kernel(
    actual_ptr, table_ptr, rows, first, coefficients_ptr, constants_ptr, tanh_ptr,
    members_ptr, integers_ptr, selected_ptr, pieces, set_sizes_ptr, set_integers_ptr, programs,
    FORMULA: tl.constexpr, DERIVATIVE: tl.constexpr, SERIES: tl.constexpr, TERMS: tl.constexpr,
    BLOCK: tl.constexpr, SETS: tl.constexpr,
):  # fmt: skip
    """Put the far elements of some pieces into sets; what is open becomes selected.

    members: int64 (programs,), the pieces. set_sizes: float64 (SETS, programs), the largest error;
    set_integers: int64 (3·SETS, programs), first pattern, pattern of the largest error, count.
    """
    program = tl.program_id(0)
    piece = tl.load(members_ptr + program)
    _, start, _, x, y, got32, error, _, _, far = _elements(
        piece, actual_ptr, table_ptr, rows, first, coefficients_ptr, constants_ptr,
        FORMULA, DERIVATIVE, SERIES, TERMS, BLOCK,
    )  # fmt: skip
    reason, cls = _sets_of(x, y, got32, far, constants_ptr, tanh_ptr, FORMULA, DERIVATIVE)
    lane = tl.arange(0, BLOCK)
    size = tl.abs(error)
    none: tl.constexpr = 4294967296
    is_open = tl.sum((far & (reason < 0)).to(tl.int32), 0)
    if is_open > 0:
        # They count as selected, and no longer as settled beyond 1/2 and 1 ULP.
        tl.store(selected_ptr + piece, tl.load(selected_ptr + piece) + is_open)
        for column in tl.static_range(5, 7):
            count = integers_ptr + column * pieces + piece
            tl.store(count, tl.load(count) - is_open)
    for number in tl.static_range(SETS):
        if number < 4:
            member = far & (reason == number)
        else:
            member = far & (reason >= 0) & (cls == number)
        count = tl.sum(member.to(tl.int32), 0)
        worst = tl.max(tl.where(member, size, 0.0), 0)
        at = tl.min(tl.where(member & (size == worst), lane, BLOCK), 0)
        earliest = tl.min(tl.where(member, lane, BLOCK), 0)
        tl.store(set_sizes_ptr + number * programs + program, worst)
        out = set_integers_ptr + program
        tl.store(out + number * programs, tl.where(count > 0, start + earliest, none))
        tl.store(out + (SETS + number) * programs, tl.where(count > 0, start + at, none))
        tl.store(out + (2 * SETS + number) * programs, count.to(tl.int64))


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
