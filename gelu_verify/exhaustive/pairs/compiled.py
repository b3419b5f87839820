"""The measuring loop over rows of pairs on a CPU, compiled by numba: no fast-math, no threads.

A tile of columns at a time: exact values, then errors, then what is counted, each a loop over
arrays that stay in the first-level cache.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from gelu_verify.measure.histogram import BIN_COUNT, OFFSET

TILE = 2048
_INF = np.inf


@njit(nogil=True, cache=True)
def products(left, column, right, certain, codes, by_row, row_code, row_certain, out):
    """Fill one tile of ``out`` (exact, code, certain) with ``left · right[column:]``."""
    exact, code, sure = out
    for i in range(exact.size):
        exact[i] = left * right[column + i]
        code[i] = row_code if by_row else codes[column + i]
        sure[i] = row_certain if by_row else certain[column + i]


@njit(nogil=True, cache=True)
def requests(x, biases, near, far, wanted):
    """Store the arguments at which f is needed for a row of sums, and return how many.

    ``s`` left of ``certain_from``, and ``-s`` from there on, where s - f(s) is what matters.
    """
    count = 0
    for i in range(biases.size):
        s = x + biases[i]
        size = abs(s)
        if near <= size < far:
            wanted[count] = s if s < 4.0 else -s
            count += 1
    return count


@njit(nogil=True, cache=True)
def beside(limit, distance):
    """Return ``limit + distance``, two units of float64 off a limit that may be a tie."""
    short = limit * 8388608.0  # 2^23: the upper 30 bits, by Veltkamp's splitting
    upper = short - (short - limit)
    if upper != limit:
        return limit + distance
    off = max(abs(distance), abs(limit) * 2.0**-51)
    return limit - off if distance < 0.0 else limit + off


@njit(nogil=True, cache=True)
def sums(x, column, biases, found, taken, curvature, near, far, certain_below, borders, out):
    """Fill one tile with f(x + bias) and return how many of ``found`` (f where asked) are used.

    See ``reference.of_sum``: the same rules.
    """
    exact, code, sure = out
    zero, deep, tail, shoulder, centre, identity = borders
    for i in range(exact.size):
        bias = biases[column + i]
        s = x + bias
        virtual = s - x
        lost = (x - (s - virtual)) + (bias - virtual)
        size = abs(s)
        if near <= size < far:
            value = found[taken]
            taken += 1
            if s >= 4.0:
                below = -value
                value = s - below
                distance = lost - below
                if abs(distance) < s * 2.0**-48:
                    value = beside(s, distance)
        elif size < near:
            if s == 0.0:
                value = s
            else:
                value = beside(s / 2, lost / 2 + curvature * s * s)
        elif s >= far and s < _INF:
            value = beside(s, lost if lost != 0.0 else -5e-324)
        elif s < 0.0:
            value = -0.0
        else:
            value = s
        exact[i] = value
        sure[i] = size < certain_below or s >= 4.0
        if not size < _INF:
            code[i] = -1
        elif size < 2.0**-12:
            code[i] = 7
        elif s <= zero:
            code[i] = 0
        else:
            region = 1
            region += s >= deep
            region += s >= tail
            region += s >= shoulder
            region += s > centre
            region += s >= identity and s > centre
            code[i] = region
    return taken


@njit(nogil=True, cache=True)
def measure(got, index, scales, limits, out, work, figures):
    """Add one tile of results to ``figures`` and return how many elements are flagged in all.

    got: float32 (N,). index: that of the first. scales: 1/ulp by exponent field of the exact value.
    """
    exact, code, sure = out
    error, size = work
    overflow, flag_from, open_width, half, one = limits
    sums_, clipped, bins, largest, largest_at, beyond, beyond_first, zeros, zero_worst, finite, \
        flagged, total = figures  # fmt: skip
    fields = exact.view(np.int64)
    for i in range(got.size):
        field = (fields[i] >> 52) & 0x7FF
        error[i] = (np.float64(got[i]) - exact[i]) * scales[field]
        size[i] = abs(error[i])
    patterns = size.view(np.int64)
    count = total[0]
    for i in range(got.size):
        g, y, region = np.float64(got[i]), exact[i], code[i]
        finite[0] += region >= 0
        if not abs(y) < overflow:
            # NaN where it is due, or an infinity where rounding overflows, is right.
            nan_is_right = g != g and y != y
            if not (nan_is_right or (y == y and g == np.copysign(_INF, y))):
                flagged[count] = index + i
                count += 1
            continue
        if not abs(g) < _INF:
            flagged[count] = index + i
            count += 1
            continue
        e = size[i]
        if g == 0.0:
            odd = not e <= 0.5
            if not odd and np.signbit(g) != np.signbit(y):
                for judged in range(2 if region >= 0 else 1):
                    zeros[0, judged] += 1
                    if zeros[1, judged] < 0:
                        zeros[1, judged] = index + i
                    if e > zero_worst[judged]:
                        zero_worst[judged] = e
                        zeros[2, judged] = index + i
        else:
            # The sign is opposite to that of the rounded value, which may be 0.
            rounds_to_zero = abs(y) * scales[(fields[i] >> 52) & 0x7FF] <= 0.5
            odd = (g > 0.0) != (y > 0.0) and not rounds_to_zero
        near_half, near_one = abs(e - half) <= open_width, abs(e - one) <= open_width
        doubtful = not sure[i] and (near_half or near_one)
        if odd or doubtful or e >= flag_from:
            flagged[count] = index + i
            count += 1
        if region < 0:
            continue
        if e > half and (sure[i] or not near_half):
            beyond[0] += 1
            if beyond_first[0] < 0:
                beyond_first[0] = index + i
        if e > one and (sure[i] or not near_one):
            beyond[1] += 1
            if beyond_first[1] < 0:
                beyond_first[1] = index + i
        if e > largest[region]:
            largest[region] = e
            largest_at[region] = index + i
        slot = (patterns[i] >> 50) - OFFSET
        slot = min(max(slot, 0), BIN_COUNT - 1)
        bins[region, slot] += 1
        sums_[region, 0] += 1
        clip = min(e, 16777216.0)
        clipped[region] += e > 16777216.0
        sums_[region, 1] += np.int64(np.rint(np.copysign(clip, error[i]) * 1048576.0))
        if e <= 256.0:
            sums_[region, 2] += np.int64(np.rint(e * e * 1048576.0))
        else:
            sums_[region, 3] += np.int64(np.rint(clip * clip / 16.0))
    total[0] = count
    return count


@njit(nogil=True, cache=True)
def _tile_arrays():
    out = (np.empty(TILE), np.empty(TILE, np.int64), np.empty(TILE, np.bool_))
    return out, (np.empty(TILE), np.empty(TILE))


@njit(nogil=True, cache=True)
def product_rows(got, first, left, right, certain, codes, by_row, scales, limits, figures):
    """Measure rows of products: got float32 (R, 65536), ``left[first + r] · right``."""
    out, work = _tile_arrays()
    columns = got.shape[1]
    for row in range(got.shape[0]):
        pattern = first + row
        for column in range(0, columns, TILE):
            products(
                left[pattern], column, right, certain, codes, by_row, codes[pattern],
                certain[pattern], out,
            )  # fmt: skip
            tile = got[row, column : column + TILE]
            measure(tile, row * columns + column, scales, limits, out, work, figures)


@njit(nogil=True, cache=True)
def wanted_rows(first, rows, values, near, far, wanted):
    """Store all arguments at which f is needed for rows of sums, and return how many."""
    count = 0
    for row in range(first, first + rows):
        count += requests(values[row], values, near, far, wanted[count:])
    return count


@njit(nogil=True, cache=True)
def sum_rows(got, first, values, found, curvature, zones, borders, scales, limits, figures):
    """Measure rows of sums; ``found`` holds f at what ``wanted_rows`` stored."""
    out, work = _tile_arrays()
    near, far, certain_below = zones
    columns = got.shape[1]
    taken = 0
    for row in range(got.shape[0]):
        for column in range(0, columns, TILE):
            taken = sums(
                values[first + row], column, values, found, taken, curvature, near, far,
                certain_below, borders, out,
            )  # fmt: skip
            tile = got[row, column : column + TILE]
            measure(tile, row * columns + column, scales, limits, out, work, figures)
