"""The measuring engine in compiled code for CPUs: one pass over the results of a stretch.

The work is done a chunk at a time, whose arrays stay in the first-level cache. Columns of the rows
are those of ``exhaustive.figures``.
"""

from __future__ import annotations

import math

import numpy as np

from gelu_verify.exhaustive import cpu_reference
from gelu_verify.exhaustive.cpu_reference import SIGMOID, TANH
from gelu_verify.exhaustive.figures import (
    APPROXIMATED,
    CANCELLED,
    COLLAPSED,
    FLUSHED,
    GUARDED,
    OPPOSITE,
    UNCOVERED,
    Column,
    Size,
)
from gelu_verify.exhaustive.jit import compiled
from gelu_verify.exhaustive.pieces import FALLING, TIES, UNORDERED
from gelu_verify.measure import histogram

#: Elements of a chunk.
CHUNK = 1024
_LAST_BIN = histogram.BIN_COUNT - 1
_LOWEST_BIN = histogram.OFFSET
_SIGN = 1 << 31
_MAGNITUDE = 0x7FFF_FFFF
_MAGNITUDE_64 = 0x7FFF_FFFF_FFFF_FFFF
_ONE = 0x3F80_0000
_HALF = 0x3F00_0000
_INFINITY = 0x7F80_0000
_BINADE = 1 << 23
_UNIT = 2.0**20
_CLIP = 2.0**24
_SPLIT = 2.0**8
#: A verdict this near, relative, is left to the judge.
_NEAR = 1e-7
#: Added to a number below 2^51 it leaves the nearest integer in the last bits.
_MAGIC = 1.5 * 2.0**52
_MAGIC_BITS = int(np.float64(_MAGIC).view(np.int64))
_FAR_FROM = 4.0
_OPEN_LEVEL = -1

_WORST_AT, _HALF_FIRST, _ONE_FIRST = (
    int(Column.WORST_AT),
    int(Column.HALF_FIRST),
    int(Column.ONE_FIRST),
)
_BACK_AT, _ZERO_FIRST, _NAN_FIRST = (
    int(Column.BACK_AT),
    int(Column.ZERO_FIRST),
    int(Column.NAN_FIRST),
)
_SET_FIRST, _SET_WORST_AT, _SET_COUNT = (
    int(Column.SET_FIRST),
    int(Column.SET_WORST_AT),
    int(Column.SET_COUNT),
)
_H, _O, _B, _Z, _N = (
    int(Column.HALF),
    int(Column.ONE),
    int(Column.BACK),
    int(Column.ZERO),
    int(Column.NAN),
)
_REACH, _CLIPPED, _SIGNED = int(Column.REACH), int(Column.CLIPPED), int(Column.SIGNED_LOW)
_WORST, _BACK_SIZE, _SET_SIZE = int(Size.WORST), int(Size.BACK), int(Size.SET)
_LOWEST, _HIGHEST = int(Size.LOWEST), int(Size.HIGHEST)


@compiled
def flat(got, start, kind, derivative, integers, results):
    """Compare results (int32 patterns (N,)) of a flat stretch with what is due there.

    kind: 0 flat zero, 1 flat identity, 2 flat half, 3 NaN. Adds +0 where -0 is due, NaN and reach
    to the row; returns False, and adds nothing, where there is anything else.
    """
    base = np.int32(start - (1 << 32) if start >= _SIGN else start)
    wrong = 0
    if kind == 0:
        for i in range(len(got)):
            wrong += got[i] != np.int32(-(1 << 31))
    elif kind == 3:
        for i in range(len(got)):
            wrong += (got[i] & np.int32(_MAGNITUDE)) <= np.int32(_INFINITY)
        return wrong == 0
    elif derivative == 1:
        due = np.int32(_ONE if kind == 1 else _HALF)
        for i in range(len(got)):
            wrong += got[i] != due
    else:
        offset = np.int32(base - (_BINADE if kind == 2 else 0))
        for i in range(len(got)):
            wrong += got[i] != np.int32(offset + np.int32(i))
    if wrong != 0 and not _count_flat(got, start, kind, derivative, wrong, integers, results):
        return False
    if kind == 2:
        integers[_REACH] = max(integers[_REACH], start + len(got) - 1)
    return True


@compiled
def _count_flat(got, start, kind, derivative, wrong, integers, results):
    """Add +0 where -0 is due, and NaN, unless there is more that is wrong."""
    zeros, nans, zero_first, nan_first, nan_last = 0, 0, -1, -1, -1
    for i in range(len(got)):
        if kind == 0 and got[i] == 0:
            zeros += 1
            if zero_first < 0:
                zero_first = i
        elif (got[i] & np.int32(_MAGNITUDE)) > np.int32(_INFINITY):
            nans += 1
            if nan_first < 0:
                nan_first = i
            nan_last = i
    if zeros + nans != wrong:
        return False
    if zeros > 0:
        integers[_Z] += zeros
        _keep_first(integers, results, _ZERO_FIRST, start + zero_first, got[zero_first])
    if nans > 0:
        integers[_N] += nans
        integers[_REACH] = max(integers[_REACH], start + nan_last)
        _keep_first(integers, results, _NAN_FIRST, start + nan_first, got[nan_first])
    return True


@compiled
def _keep_first(integers, results, column, pattern, got):
    if pattern < integers[column]:
        integers[column] = pattern
        results[column] = got


@compiled
def _keep_worst(sizes, integers, results, size_column, column, size, pattern, got):
    if size > sizes[size_column] or (size == sizes[size_column] and pattern < integers[column]):
        sizes[size_column] = size
        integers[column] = pattern
        results[column] = got


@compiled
def _add_to_set(sizes, integers, results, number, size, pattern, got):
    integers[_SET_COUNT + number] += 1
    _keep_first(integers, results, _SET_FIRST + number, pattern, got)
    _keep_worst(
        sizes, integers, results, _SET_SIZE + number, _SET_WORST_AT + number, size, pattern, got
    )


@compiled
def _per_ulp(y, inward):
    """Return 1/ulp(y); inward: y, where a power of two, is not reached from below."""
    size = abs(y)
    mantissa, exponent = math.frexp(size)
    exponent -= 1
    if inward and mantissa == 0.5:
        exponent -= 1
    if size == 0.0 or exponent < -126:
        exponent = -126
    return math.ldexp(1.0, 23 - exponent)


@compiled
def _slack(x, formula, derivative, unit):
    """Return the error that cancellation explains: ``Operator.cancellation`` in units of u."""
    size = abs(x)
    if derivative == 0:
        return max(size * unit, 2.2250738585072014e-308)
    if formula == SIGMOID:
        slope = 2 * 1.702 if 1.702 * size < 39.0 else 0.0
    elif formula == TANH:
        c = math.sqrt(2 / math.pi)
        u = c * (size + 0.044715 * size * size * size)
        slope = c * (1 + 3 * 0.044715 * size * size) if u < 20.0 else 0.0
    else:
        slope = math.exp(-0.5 * size * size) / math.sqrt(2 * math.pi) * (3 + 0.5 * size * size)
    return (1 + size * slope) * unit


@compiled
def _argument_slack(x, y, ulp, formula, unit):
    """Return ``judge.argument_slack``: what rounding the tail's argument explains."""
    size = abs(x)
    if formula == SIGMOID:
        condition, roundings = 1.702 * size, 2.0
    elif formula == TANH:
        condition = 2.0 * math.sqrt(2 / math.pi) * size * (0.044715 * size * size + 1.0)
        roundings = 7.0
    else:
        condition, roundings = size * size + 1.0, 2.0
    return condition * roundings * unit * abs(y) + 4.0 * ulp


@compiled
def _covered(x, got, y, ulp, formula, derivative, zero_below, unit):
    """Tell whether cancellation covers an error: 1 yes, 0 no, -1 too near to tell.

    As ``judge.cancellation_ratio`` does, y being the value of ``formula``.
    """
    if derivative == 0 and x < zero_below and got != 0.0:
        slack = _argument_slack(x, y, ulp, formula, unit)
    else:
        slack = _slack(x, formula, derivative, unit)
    ratio = abs(got - y) / slack
    if abs(ratio - 1.0) < _NEAR:
        return -1
    return 1 if ratio < 1.0 else 0


@compiled
def _level(x, got, y, formula, derivative, constants, tanh_table, open_width):
    """Return the set that says which built-in contracts an error beyond 4 ULP holds.

    The first of its reasons: ``judge.covers`` for the guard, cancellation, and the tanh form in
    place of the formula; ``_OPEN_LEVEL`` where one is too near to tell.
    """
    threshold, unit = constants[5], constants[6]
    due = x if derivative == 0 else 1.0
    if (x <= -threshold and got == 0.0) or (x >= threshold and got == due):
        return GUARDED
    ulp = 1.0 / _per_ulp(y, x < 0.0 or (derivative == 0 and x > 1.0))
    covered = _covered(x, got, y, ulp, formula, derivative, constants[7], unit)
    if covered != 0:
        return CANCELLED if covered == 1 else _OPEN_LEVEL
    if formula == TANH:
        return UNCOVERED
    a = abs(x)
    if derivative == 1:
        left = cpu_reference.logistic_slope(a, TANH, tanh_table)
        stand_in = left if x < 0.0 else 1.0 - left
    else:
        left = cpu_reference.logistic_tail(a, TANH, tanh_table)
        stand_in = x * (left if x < 0.0 else 1.0 - left)
    ulp = 1.0 / _per_ulp(stand_in, x < 0.0 or (derivative == 0 and x > 1.0))
    size = abs(got - stand_in) / ulp
    if abs(size - _FAR_FROM) <= open_width:
        return _OPEN_LEVEL
    if size < _FAR_FROM:
        return APPROXIMATED
    covered = _covered(x, got, stand_in, ulp, TANH, derivative, constants[8], unit)
    if covered != 0:
        return APPROXIMATED if covered == 1 else _OPEN_LEVEL
    return UNCOVERED


@compiled
def _class(got, y):
    """Return the set of the class of an error beyond 4 ULP, 0 for none, -1 if too near to tell."""
    size = abs(y)
    if size < 2.0**-148:
        return -1
    if got == 0.0:
        if abs(size * 2.0**126 - 1.0) < _NEAR:
            return -1
        return COLLAPSED if size > 2.0**-126 else FLUSHED
    return OPPOSITE if got * y < 0.0 else 0


@compiled
def _scale(y_bits, error, per_ulp_bits, inward, got, y, per_ulp):
    """Write 1/ulp(y) and the signed errors in ULP. See ``block._per_ulp``."""
    for i in range(len(y)):
        magnitude = (y_bits[i] & np.int64(_MAGNITUDE_64)) - inward
        magnitude = max(magnitude, np.int64(897 << 52)) & np.int64(0x7FF0_0000_0000_0000)
        per_ulp_bits[i] = np.int64((2 * 1023 + 23) << 52) - magnitude
    for i in range(len(y)):
        error[i] = (np.float64(got[i]) - y[i]) * per_ulp[i]


@compiled
def measure(
    actual, got_bits, low, start, stop, kind, formula, derivative, is_series, c, tanh_table,
    constants, rooms, room_bits, sizes, integers, results, counts, selected, chosen,
):  # fmt: skip
    """Measure a stretch and add to its row; return how many elements are selected in all.

    actual: float32, the first for pattern ``low``; got_bits: the same as int32. constants: float64
    (10,): c2, c4 of the series; the error and the step back from which an element is selected, the
    slack in ``|x|`` of the latter; threshold of the guard, unit of cancellation; where only 0 is
    explained, of the formula and of tanh; half the width in which a verdict is open. rooms: float64
    (6, CHUNK), room_bits: the same as int64.
    selected: int64, patterns from index ``chosen`` on.
    """
    inward = np.int64(start > _SIGN or (derivative == 0 and _ONE < start < _SIGN))
    for begin in range(start, stop, CHUNK):
        n = min(CHUNK, stop - begin)
        x, y, t, per_ulp, error = (
            rooms[0, :n], rooms[1, :n], rooms[2, :n], rooms[3, :n], rooms[4, :n],
        )  # fmt: skip
        got = actual[begin - low : begin - low + n]
        patterns = room_bits[5, :n].view(np.int32)
        first = np.int32(begin - (1 << 32) if begin >= _SIGN else begin)
        for i in range(n):
            patterns[i] = first + np.int32(i)
        inputs = patterns[:n].view(np.float32)
        for i in range(n):
            x[i] = np.float64(inputs[i])
        if is_series:
            cpu_reference.tiny(x, derivative, constants[0], constants[1], y)
        else:
            cpu_reference.full(x, formula, derivative, c, t, y)
        _scale(room_bits[1, :n], error, room_bits[3, :n], inward, got, y, per_ulp)
        before = np.nan
        if begin > start or (begin > low and kind & UNORDERED == 0):
            before = np.float64(actual[begin - low - 1])
        bits = got_bits[begin - low : begin - low + n]
        if kind & TIES == 0 and _ordinary(
            begin, x, y, error, room_bits[4, :n], per_ulp, t, room_bits[2, :n], got, bits, before,
            kind, derivative, constants, sizes, integers, results, counts,
        ):  # fmt: skip
            continue
        chosen = _chunk(
            begin, x, y, error, room_bits[4, :n], per_ulp, got, bits, before,
            kind, formula, derivative, tanh_table, constants,
            sizes, integers, results, counts, selected, chosen,
        )  # fmt: skip
    return chosen


@compiled
def _chunk(
    begin, x, y, error, error_bits, per_ulp, got32, got_bits, before, kind, formula, derivative,
    tanh_table, constants, sizes, integers, results, counts, selected, chosen,
):  # fmt: skip
    """Add the elements of a chunk to the row and to the selected ones."""
    select_from, back_from, back_slack = constants[2], constants[3], constants[4]
    open_width = constants[9]
    ties, falling, negative = kind & TIES != 0, kind & FALLING != 0, begin >= _SIGN
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
                if back >= sizes[_BACK_SIZE]:
                    _keep_worst(
                        sizes, integers, results, _BACK_SIZE, _BACK_AT, back, pattern, got_bits[i]
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
        sizes[_LOWEST] = min(sizes[_LOWEST], error[i])
        sizes[_HIGHEST] = max(sizes[_HIGHEST], error[i])
        if size > worst:
            worst = size
            worst_index = i
        slot = ((error_bits[i] & np.int64(_MAGNITUDE_64)) >> 50) - _LOWEST_BIN
        counts[min(max(slot, 0), _LAST_BIN)] += 1
        if size <= _SPLIT:
            signed += _rounded(error[i] * _UNIT)
            small += _rounded(size * size * _UNIT)
        else:
            clipped = min(size, _CLIP)
            integers[_CLIPPED] += size > _CLIP
            signed += _rounded(math.copysign(clipped, error[i]) * _UNIT)
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
            elif size > _FAR_FROM + open_width:
                if not select:
                    cls = _class(got, y[i])
                    level = _level(
                        x[i], got, y[i], formula, derivative, constants, tanh_table, open_width
                    )
                    select = level == _OPEN_LEVEL or cls < 0
            elif size >= _FAR_FROM - open_width or not (got * y[i] > 0.0):
                select = True
            if level >= 0 and not select:
                _add_to_set(sizes, integers, results, level, size, pattern, got_bits[i])
                if cls > 0:
                    _add_to_set(sizes, integers, results, cls, size, pattern, got_bits[i])
        if select:
            selected[chosen] = pattern
            chosen += 1
            continue
        if beyond_half:
            half += 1
            _keep_first(integers, results, _HALF_FIRST, pattern, got_bits[i])
            if size > 1.0 + open_width:
                one += 1
                _keep_first(integers, results, _ONE_FIRST, pattern, got_bits[i])
    if worst_index >= 0:
        _keep_worst(
            sizes, integers, results, _WORST, _WORST_AT, worst, begin + worst_index,
            got_bits[worst_index],
        )  # fmt: skip
    integers[_H] += half
    integers[_O] += one
    integers[_B] += backs
    integers[_REACH] = max(integers[_REACH], reach)
    for column, total in ((_SIGNED, signed), (_SIGNED + 2, small), (_SIGNED + 4, large)):
        integers[column] += total & 0xFFFF_FFFF
        integers[column + 1] += total >> 32
    return chosen


@compiled
def _ordinary(
    begin, x, y, error, error_bits, per_ulp, t, t_bits, got, got_bits, before, kind, derivative,
    constants, sizes, integers, results, counts,
):  # fmt: skip
    """Add a chunk, without branches, if none of its elements is selected or in a set.

    Returns False, and adds nothing, if one may be. t: room for N numbers.
    """
    width, negative = constants[9], begin >= _SIGN
    # As integers numbers with a sign bit fall: with the other bits turned they rise, and compare
    # without branches. A NaN is above or below all.
    lowest, highest = np.int64(_MAGNITUDE_64), np.int64(-_MAGNITUDE_64 - 1)
    for i in range(len(x)):
        ordered = error_bits[i] ^ ((error_bits[i] >> 63) & np.int64(_MAGNITUDE_64))
        lowest, highest = min(lowest, ordered), max(highest, ordered)
    strange, half, one = 0, 0, 0
    for i in range(len(x)):
        size = abs(error[i])
        strange += abs(size - 0.5) <= width
        strange += abs(size - 1.0) <= width
        strange += not (np.float64(got[i]) * y[i] > 0.0)
        half += size > 0.5 + width
        one += size > 1.0 + width
    t_bits[0] = lowest ^ ((lowest >> 63) & np.int64(_MAGNITUDE_64))
    t_bits[1] = highest ^ ((highest >> 63) & np.int64(_MAGNITUDE_64))
    low, high = t[0], t[1]
    limit = min(constants[2], _FAR_FROM - width)
    if strange > 0 or not (low > -limit and high < limit):
        return False
    top = max(high, -low)
    backs, back, back_index = 0, 0.0, -1
    if derivative == 0:
        backs, back, back_index = _steps_back(got, before, kind, x, per_ulp, constants)
        if backs < 0:
            return False
    for i in range(len(x)):
        t[i] = error[i] * _UNIT + _MAGIC
    signed = np.int64(0)
    for i in range(len(x)):
        signed += t_bits[i] - np.int64(_MAGIC_BITS)
    for i in range(len(x)):
        t[i] = error[i] * error[i] * _UNIT + _MAGIC
    small = np.int64(0)
    for i in range(len(x)):
        small += t_bits[i] - np.int64(_MAGIC_BITS)
    for i in range(len(x)):
        slot = ((error_bits[i] & np.int64(_MAGNITUDE_64)) >> 50) - _LOWEST_BIN
        counts[max(slot, 0)] += 1  # far below the last bin
    sizes[_LOWEST] = min(sizes[_LOWEST], low)
    sizes[_HIGHEST] = max(sizes[_HIGHEST], high)
    if top > sizes[_WORST] or (top == sizes[_WORST] and begin < integers[_WORST_AT]):
        index = 0
        while abs(error[index]) != top:
            index += 1
        _keep_worst(
            sizes, integers, results, _WORST, _WORST_AT, top, begin + index, got_bits[index]
        )
    if half > 0 and begin < integers[_HALF_FIRST]:
        _find_first(error, 0.5 + width, begin, got_bits, integers, results, _HALF_FIRST)
    if one > 0 and begin < integers[_ONE_FIRST]:
        _find_first(error, 1.0 + width, begin, got_bits, integers, results, _ONE_FIRST)
    if backs > 0 and back >= sizes[_BACK_SIZE]:
        _keep_worst(
            sizes, integers, results, _BACK_SIZE, _BACK_AT, back, begin + back_index,
            got_bits[back_index],
        )  # fmt: skip
    index = len(x) - 1
    while index >= 0 and begin + index > integers[_REACH]:
        due = 0.0 if negative else (x[index] if derivative == 0 else 1.0)
        if np.float64(got[index]) != due:
            integers[_REACH] = begin + index
        index -= 1
    integers[_H] += half
    integers[_O] += one
    integers[_B] += backs
    for column, total in ((_SIGNED, signed), (_SIGNED + 2, small)):
        integers[column] += total & 0xFFFF_FFFF
        integers[column + 1] += total >> 32
    return True


@compiled
def _find_first(error, limit, begin, got_bits, integers, results, column):
    index = 0
    while not abs(error[index]) > limit:
        index += 1
    _keep_first(integers, results, column, begin + index, got_bits[index])


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


@compiled
def _nearest_half(pattern):
    """Return RN(x/2 + x²·f''(0)/2) as a pattern, |x| < 2^-125: see ``Block._nearest_half``."""
    magnitude = pattern & _MAGNITUDE
    if pattern >= _SIGN:
        return np.int32((magnitude >> 1) - (1 << 31))
    return np.int32((magnitude + 1) >> 1)


@compiled
def _rounded(value):
    """Round to the nearest integer, ties to even, ``|value|`` below 2^51."""
    return np.int64((value + _MAGIC) - _MAGIC)
