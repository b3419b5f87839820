"""Chunks with elements that are selected, in a set, or not finite."""

from __future__ import annotations

import math

import numpy as np

from gelu_verify.exhaustive.cpu_kernels.columns import (
    BACK_AT,
    BACK_COUNT,
    BACK_SIZE,
    CLIP,
    CLIPPED,
    FAR_FROM,
    HALF_COUNT,
    HALF_FIRST,
    HIGHEST,
    LAST_BIN,
    LOWEST,
    LOWEST_BIN,
    MAGIC,
    MAGNITUDE,
    MAGNITUDE_64,
    ONE_COUNT,
    ONE_FIRST,
    OPEN_LEVEL,
    REACH,
    SIGN,
    SIGNED,
    SPLIT,
    UNIT,
    WORST,
    WORST_AT,
)
from gelu_verify.exhaustive.cpu_kernels.row import add_to_set, keep_first, keep_worst
from gelu_verify.exhaustive.cpu_kernels.verdict import class_of, level_of
from gelu_verify.exhaustive.jit import compiled
from gelu_verify.exhaustive.pieces import FALLING, TIES


@compiled
def any_chunk(
    begin, x, y, error, error_bits, per_ulp, got32, got_bits, before, kind, formula, derivative,
    tanh_table, constants, sizes, integers, results, counts, selected, chosen,
):  # fmt: skip
    """Add the elements of a chunk to the row and to the selected ones."""
    select_from, back_from, back_slack = constants[2], constants[3], constants[4]
    open_width = constants[9]
    ties, falling, negative = kind & TIES != 0, kind & FALLING != 0, begin >= SIGN
    signed, small, large = np.int64(0), np.int64(0), np.int64(0)
    half, one, backs = 0, 0, 0
    reach = np.int64(-1)
    worst = -1.0
    worst_index = -1
    for i in range(len(x)):
        got = np.float64(got32[i])
        size = abs(error[i])
        pattern = begin + i
        select = False
        back = 0.0
        if derivative == 0:
            step = got - before if falling else before - got
            if step > 0.0 and step < 1e300:
                back = step * per_ulp[i]
                backs += 1
                select = back > back_from and step > back_slack * abs(x[i])
                if back >= sizes[BACK_SIZE]:
                    keep_worst(
                        sizes, integers, results, BACK_SIZE, BACK_AT, back, pattern, got_bits[i]
                    )
        before = got
        if negative:
            saturated = got == 0.0
        else:
            saturated = got == (x[i] if derivative == 0 else 1.0)
        if not saturated:
            reach = pattern
        if not size < 1e300:
            selected[chosen] = pattern
            chosen += 1
            continue
        sizes[LOWEST] = min(sizes[LOWEST], error[i])
        sizes[HIGHEST] = max(sizes[HIGHEST], error[i])
        if size > worst:
            worst = size
            worst_index = i
        slot = ((error_bits[i] & np.int64(MAGNITUDE_64)) >> 50) - LOWEST_BIN
        counts[min(max(slot, 0), LAST_BIN)] += 1
        if size <= SPLIT:
            signed += _rounded(error[i] * UNIT)
            small += _rounded(size * size * UNIT)
        else:
            clipped = min(size, CLIP)
            integers[CLIPPED] += size > CLIP
            signed += _rounded(math.copysign(clipped, error[i]) * UNIT)
            large += _rounded(clipped * clipped * 0.0625)
        beyond_half = size > 0.5 + open_width
        if ties:
            beyond_half = got_bits[i] != _nearest_half(pattern)
        elif abs(size - 0.5) <= open_width:
            select = True
        if not (got * y[i] > 0.0) or size > 0.75:
            level, cls = -2, 0
            if abs(size - 1.0) <= open_width or size > select_from:
                select = True
            elif size > FAR_FROM + open_width:
                if not select:
                    cls = class_of(got, y[i])
                    level = level_of(
                        x[i], got, y[i], formula, derivative, constants, tanh_table, open_width
                    )
                    select = level == OPEN_LEVEL or cls < 0
            elif size >= FAR_FROM - open_width or not (got * y[i] > 0.0):
                select = True
            if level >= 0 and not select:
                add_to_set(sizes, integers, results, level, size, pattern, got_bits[i])
                if cls > 0:
                    add_to_set(sizes, integers, results, cls, size, pattern, got_bits[i])
        if select:
            selected[chosen] = pattern
            chosen += 1
            continue
        if beyond_half:
            half += 1
            keep_first(integers, results, HALF_FIRST, pattern, got_bits[i])
            if size > 1.0 + open_width:
                one += 1
                keep_first(integers, results, ONE_FIRST, pattern, got_bits[i])
    if worst_index >= 0:
        keep_worst(
            sizes, integers, results, WORST, WORST_AT, worst, begin + worst_index,
            got_bits[worst_index],
        )  # fmt: skip
    integers[HALF_COUNT] += half
    integers[ONE_COUNT] += one
    integers[BACK_COUNT] += backs
    integers[REACH] = max(integers[REACH], reach)
    for column, total in ((SIGNED, signed), (SIGNED + 2, small), (SIGNED + 4, large)):
        integers[column] += total & 0xFFFF_FFFF
        integers[column + 1] += total >> 32
    return chosen


@compiled
def _nearest_half(pattern):
    """Return RN(x/2 + x²·f''(0)/2) as a pattern, |x| < 2^-125: see ``Block._nearest_half``."""
    magnitude = pattern & MAGNITUDE
    if pattern >= SIGN:
        return np.int32((magnitude >> 1) - (1 << 31))
    return np.int32((magnitude + 1) >> 1)


@compiled
def _rounded(value):
    """Round to the nearest integer, ties to even, ``|value|`` below 2^51."""
    return np.int64((value + MAGIC) - MAGIC)
