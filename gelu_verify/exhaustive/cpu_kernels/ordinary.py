"""Chunks in which nothing is selected or in a set: most of them, and without branches."""

from __future__ import annotations

import numpy as np

from gelu_verify.exhaustive.cpu_kernels.columns import (
    BACK_AT,
    BACK_COUNT,
    BACK_SIZE,
    FAR_FROM,
    HALF_COUNT,
    HALF_FIRST,
    HIGHEST,
    LOWEST,
    LOWEST_BIN,
    MAGIC,
    MAGIC_BITS,
    MAGNITUDE_64,
    ONE_COUNT,
    ONE_FIRST,
    REACH,
    SIGN,
    SIGNED,
    UNIT,
    WORST,
    WORST_AT,
)
from gelu_verify.exhaustive.cpu_kernels.row import keep_first, keep_worst
from gelu_verify.exhaustive.jit import compiled
from gelu_verify.exhaustive.pieces import FALLING


@compiled
def ordinary_chunk(
    begin, x, y, error, error_bits, per_ulp, t, t_bits, got, got_bits, before, kind, derivative,
    constants, sizes, integers, results, counts,
):  # fmt: skip
    """Add a chunk, without branches, if none of its elements is selected or in a set.

    Returns False, and adds nothing, if one may be. t: room for N numbers.
    """
    width, negative = constants[9], begin >= SIGN
    # As integers numbers with a sign bit fall: with the other bits turned they rise, and compare
    # without branches. A NaN is above or below all.
    lowest, highest = np.int64(MAGNITUDE_64), np.int64(-MAGNITUDE_64 - 1)
    for i in range(len(x)):
        ordered = error_bits[i] ^ ((error_bits[i] >> 63) & np.int64(MAGNITUDE_64))
        lowest, highest = min(lowest, ordered), max(highest, ordered)
    strange, half, one = 0, 0, 0
    for i in range(len(x)):
        size = abs(error[i])
        strange += abs(size - 0.5) <= width
        strange += abs(size - 1.0) <= width
        strange += not (np.float64(got[i]) * y[i] > 0.0)
        half += size > 0.5 + width
        one += size > 1.0 + width
    t_bits[0] = lowest ^ ((lowest >> 63) & np.int64(MAGNITUDE_64))
    t_bits[1] = highest ^ ((highest >> 63) & np.int64(MAGNITUDE_64))
    low, high = t[0], t[1]
    limit = min(constants[2], FAR_FROM - width)
    if strange > 0 or not (low > -limit and high < limit):
        return False
    top = max(high, -low)
    backs, back, back_index = 0, 0.0, -1
    if derivative == 0:
        backs, back, back_index = _steps_back(got, before, kind, x, per_ulp, constants)
        if backs < 0:
            return False
    for i in range(len(x)):
        t[i] = error[i] * UNIT + MAGIC
    signed = np.int64(0)
    for i in range(len(x)):
        signed += t_bits[i] - np.int64(MAGIC_BITS)
    for i in range(len(x)):
        t[i] = error[i] * error[i] * UNIT + MAGIC
    small = np.int64(0)
    for i in range(len(x)):
        small += t_bits[i] - np.int64(MAGIC_BITS)
    for i in range(len(x)):
        slot = ((error_bits[i] & np.int64(MAGNITUDE_64)) >> 50) - LOWEST_BIN
        counts[max(slot, 0)] += 1  # far below the last bin
    sizes[LOWEST] = min(sizes[LOWEST], low)
    sizes[HIGHEST] = max(sizes[HIGHEST], high)
    if top > sizes[WORST] or (top == sizes[WORST] and begin < integers[WORST_AT]):
        index = 0
        while abs(error[index]) != top:
            index += 1
        keep_worst(sizes, integers, results, WORST, WORST_AT, top, begin + index, got_bits[index])
    if half > 0 and begin < integers[HALF_FIRST]:
        _find_first(error, 0.5 + width, begin, got_bits, integers, results, HALF_FIRST)
    if one > 0 and begin < integers[ONE_FIRST]:
        _find_first(error, 1.0 + width, begin, got_bits, integers, results, ONE_FIRST)
    if backs > 0 and back >= sizes[BACK_SIZE]:
        keep_worst(
            sizes, integers, results, BACK_SIZE, BACK_AT, back, begin + back_index,
            got_bits[back_index],
        )  # fmt: skip
    index = len(x) - 1
    while index >= 0 and begin + index > integers[REACH]:
        due = 0.0 if negative else (x[index] if derivative == 0 else 1.0)
        if np.float64(got[index]) != due:
            integers[REACH] = begin + index
        index -= 1
    integers[HALF_COUNT] += half
    integers[ONE_COUNT] += one
    integers[BACK_COUNT] += backs
    for column, total in ((SIGNED, signed), (SIGNED + 2, small)):
        integers[column] += total & 0xFFFF_FFFF
        integers[column + 1] += total >> 32
    return True


@compiled
def _find_first(error, limit, begin, got_bits, integers, results, column):
    index = 0
    while not abs(error[index]) > limit:
        index += 1
    keep_first(integers, results, column, begin + index, got_bits[index])


@compiled
def _steps_back(got, before, kind, x, per_ulp, constants):
    """Return how many results step back, the largest step in ULP and its index; all finite.

    -1 in place of the count if one is selected.
    """
    sign = 1.0 if kind & FALLING != 0 else -1.0
    first = (np.float64(got[0]) - before) * sign
    count = 1 if 0.0 < first < 1e300 else 0
    if sign > 0.0:
        for i in range(1, len(got)):
            count += got[i] > got[i - 1]
    else:
        for i in range(1, len(got)):
            count += got[i] < got[i - 1]
    largest, index = 0.0, -1
    if count == 0:
        return count, largest, index
    for i in range(len(got)):
        step = first if i == 0 else (np.float64(got[i]) - np.float64(got[i - 1])) * sign
        if 0.0 < step < 1e300:
            back = step * per_ulp[i]
            if back > constants[3] and step > constants[4] * abs(x[i]):
                return -1, largest, index
            if back > largest:
                largest, index = back, i
    return count, largest, index
