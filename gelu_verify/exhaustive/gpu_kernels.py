"""The measuring pass in Triton: one read of the kernel's output, inputs made from the counter.

A program takes a piece: consecutive patterns within one span, so that zone, region and binade are
those of the piece. It leaves the figures of the piece; what needs thought (classes, verdicts,
errors beyond 2^8 ULP) it flags, and the host measures that piece again the general way.
"""

from __future__ import annotations

import triton
import triton.language as tl

from gelu_verify.exhaustive.gpu_reference import exact

#: Bits of the flag of a piece.
LARGE = 1
UNUSUAL = 2


@triton.jit
def flat_kernel(
    actual_ptr, starts_ptr, counts_ptr, kinds_ptr, wrong_ptr, first,
    IDENTITY: tl.constexpr, HALF: tl.constexpr, BLOCK: tl.constexpr, CHUNKS: tl.constexpr,
):  # fmt: skip
    """Store, for every flat piece, how many results are not as expected, and how many not +0.

    kinds: 0 flat zero, 1 flat identity, 2 flat half.
    """
    piece = tl.program_id(0)
    start, count, kind = (
        tl.load(starts_ptr + piece),
        tl.load(counts_ptr + piece),
        tl.load(kinds_ptr + piece),
    )
    wrong = tl.zeros((BLOCK,), tl.int32)
    nonzero = tl.zeros((BLOCK,), tl.int32)
    for chunk in range(CHUNKS):
        lane = chunk * BLOCK + tl.arange(0, BLOCK)
        mask = lane < count
        pattern = start + lane
        got = tl.load(actual_ptr + (pattern - first), mask=mask, other=0)
        bits = pattern.to(tl.int32)
        identity = bits if IDENTITY == 0 else tl.full((BLOCK,), IDENTITY, tl.int32)
        half = bits - 8388608 if HALF == 0 else tl.full((BLOCK,), HALF, tl.int32)
        expected = tl.where(kind == 1, identity, half)
        expected = tl.where(kind == 0, -2147483648, expected)
        wrong += ((got != expected) & mask).to(tl.int32)
        nonzero += ((got != 0) & mask).to(tl.int32)
    tl.store(wrong_ptr + 2 * piece, tl.sum(wrong, 0))
    tl.store(wrong_ptr + 2 * piece + 1, tl.sum(nonzero, 0))


@triton.jit
def measure_kernel(
    actual_ptr, starts_ptr, counts_ptr, spans_ptr, falling_ptr, table_ptr, first,
    largest_ptr, integers_ptr, histogram_ptr, sums_ptr, constants_ptr,
    FORMULA: tl.constexpr, DERIVATIVE: tl.constexpr, SERIES: tl.constexpr, TERMS: tl.constexpr,
    LOWEST_BIN: tl.constexpr, BINS: tl.constexpr, BINS_POWER: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """Measure one piece of at most BLOCK patterns.

    largest: float64 (pieces, 2): largest error; largest step back, in ULP.
    integers: int64 (pieces, 10): flag; pattern of the largest error; elements beyond 1/2 and
        beyond 1 ULP, the first of each; reversals, pattern of the largest; pattern of the last
        result that is not saturated. -1 where there is none.
    constants: float64 (4,): c2, c4 of the series; the error from which an element is flagged;
        half the width around 1/2 and 1 ULP in which a verdict is open.
    histogram: int32 (spans, BINS_POWER); sums: int64 (spans, 2): signed errors and squares.
    """
    piece = tl.program_id(0)
    start, count, span = (
        tl.load(starts_ptr + piece),
        tl.load(counts_ptr + piece),
        tl.load(spans_ptr + piece),
    )
    lane = tl.arange(0, BLOCK)
    mask = lane < count
    pattern = start + lane
    bits = pattern.to(tl.int32)
    x32 = bits.to(tl.float32, bitcast=True)
    x = x32.to(tl.float64)
    got32 = tl.load(actual_ptr + (pattern - first), mask=mask, other=0.0)
    got = got32.to(tl.float64)
    c2, c4 = tl.load(constants_ptr), tl.load(constants_ptr + 1)
    flag_from, open_width = tl.load(constants_ptr + 2), tl.load(constants_ptr + 3)
    y = exact(x, table_ptr, c2, c4, FORMULA, DERIVATIVE, SERIES, TERMS)

    # ulp(y) = 2^(max(e, -126) - 23), e from the pattern of y, one less where y is a power of two
    # that the exact value does not reach (``fast.inward``).
    magnitude = y.to(tl.int64, bitcast=True) & 0x7FFFFFFFFFFFFFFF
    if DERIVATIVE == 1:
        inward = x < 0.0
    else:
        inward = (x < 0.0) | (x > 1.0)
    exponent = ((magnitude - inward.to(tl.int64)) >> 52) - 1023
    exponent = tl.maximum(exponent, -126)
    per_ulp = ((1023 + 23 - exponent) << 52).to(tl.float64, bitcast=True)
    error = tl.where(mask, (got - y) * per_ulp, 0.0)
    size = tl.abs(error)
    ordinary = (got * y > 0.0) & (size < 1e300)
    finite = size < 1e300

    worst = tl.max(tl.where(finite, size, 0.0), 0)
    worst_at = tl.min(tl.where((size == worst) & mask, pattern, 4294967296), 0)
    odd = tl.sum((~ordinary & mask).to(tl.int32), 0)
    # What is not finite has a class, by which the host judges it.
    half, one = finite & (size > 0.5 + open_width), finite & (size > 1.0 + open_width)
    near = (size > flag_from) | (tl.abs(size - 0.5) <= open_width)
    near = near | (tl.abs(size - 1.0) <= open_width)
    unusual = odd + tl.sum((near & mask).to(tl.int32), 0)

    back = tl.zeros((BLOCK,), tl.float64)
    if DERIVATIVE == 0:
        has_before = pattern > first
        before = tl.load(actual_ptr + (pattern - first) - 1, mask=mask & has_before, other=0.0)
        step = tl.where(mask & has_before, got - before.to(tl.float64), 0.0)
        direction = tl.load(falling_ptr + piece)
        step = tl.where((direction == 2) & (lane == 0), 0.0, step)
        step = tl.where(direction == 1, step, -step)
        back = tl.where((step > 0.0) & (step < 1e300), step * per_ulp, 0.0)
    worst_back = tl.max(back, 0)
    back_at = tl.min(tl.where(back == worst_back, pattern, 4294967296), 0)

    if DERIVATIVE == 1:
        saturated = got32 == 1.0
    else:
        saturated = got32 == x32
    saturated = tl.where(start >= 2147483648, got32 == 0.0, saturated)
    reach = tl.max(tl.where(~saturated & mask, pattern, -1), 0)

    large = (worst > 256.0) | (tl.sum((~finite & mask).to(tl.int32), 0) > 0)
    flag = large.to(tl.int64) + 2 * (unusual > 0).to(tl.int64)
    tl.store(largest_ptr + 2 * piece, worst)
    tl.store(largest_ptr + 2 * piece + 1, worst_back)
    out = integers_ptr + 10 * piece
    tl.store(out, flag)
    tl.store(out + 1, worst_at)
    tl.store(out + 2, tl.sum((half & mask).to(tl.int64), 0))
    tl.store(out + 3, tl.min(tl.where(half & mask, pattern, 4294967296), 0))
    tl.store(out + 4, tl.sum((one & mask).to(tl.int64), 0))
    tl.store(out + 5, tl.min(tl.where(one & mask, pattern, 4294967296), 0))
    tl.store(out + 6, tl.sum((back > 0.0).to(tl.int64), 0))
    tl.store(out + 7, back_at)
    tl.store(out + 8, reach)
    if large == 0:
        # Rounded to integers by adding 1.5·2^52; |error| <= 2^8, so units of 2^-20 are below 2^28.
        magic = 6755399441055744.0
        signed = ((error * 1048576.0 + magic) - magic).to(tl.int64)
        square = ((size * size * 1048576.0 + magic) - magic).to(tl.int64)
        tl.atomic_add(sums_ptr + 2 * span, tl.sum(signed, 0))
        tl.atomic_add(sums_ptr + 2 * span + 1, tl.sum(square, 0))
        slot = (size.to(tl.int64, bitcast=True) >> 50) - LOWEST_BIN
        slot = tl.minimum(tl.maximum(slot, 0), BINS - 1).to(tl.int32)
        counts = tl.histogram(tl.where(mask, slot, BINS_POWER - 1), BINS_POWER)
        bins = tl.arange(0, BINS_POWER)
        used = (counts > 0) & (bins < BINS)
        tl.atomic_add(histogram_ptr + span * BINS_POWER + bins, counts, mask=used)
