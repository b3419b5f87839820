"""Stretches where the results are known without any arithmetic."""

from __future__ import annotations

import numpy as np

from gelu_verify.exhaustive.cpu_kernels.columns import (
    BINADE,
    HALF,
    INFINITY,
    MAGNITUDE,
    NAN_COUNT,
    NAN_FIRST,
    ONE,
    REACH,
    SIGN,
    ZERO_COUNT,
    ZERO_FIRST,
)
from gelu_verify.exhaustive.cpu_kernels.row import keep_first
from gelu_verify.exhaustive.jit import compiled


@compiled
def flat(got, start, kind, derivative, integers, results):
    """Compare results (int32 patterns (N,)) of a flat stretch with what is due there.

    kind: 0 flat zero, 1 flat identity, 2 flat half, 3 NaN. Adds +0 where -0 is due, NaN and reach
    to the row; returns False, and adds nothing, where there is anything else.
    """
    base = np.int32(start - (1 << 32) if start >= SIGN else start)
    wrong = 0
    if kind == 0:
        for i in range(len(got)):
            wrong += got[i] != np.int32(-(1 << 31))
    elif kind == 3:
        for i in range(len(got)):
            wrong += (got[i] & np.int32(MAGNITUDE)) <= np.int32(INFINITY)
        return wrong == 0
    elif derivative == 1:
        due = np.int32(ONE if kind == 1 else HALF)
        for i in range(len(got)):
            wrong += got[i] != due
    else:
        offset = np.int32(base - (BINADE if kind == 2 else 0))
        for i in range(len(got)):
            wrong += got[i] != np.int32(offset + np.int32(i))
    if wrong != 0 and not _count_flat(got, start, kind, derivative, wrong, integers, results):
        return False
    if kind == 2:
        integers[REACH] = max(integers[REACH], start + len(got) - 1)
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
        elif (got[i] & np.int32(MAGNITUDE)) > np.int32(INFINITY):
            nans += 1
            if nan_first < 0:
                nan_first = i
            nan_last = i
    if zeros + nans != wrong:
        return False
    if zeros > 0:
        integers[ZERO_COUNT] += zeros
        keep_first(integers, results, ZERO_FIRST, start + zero_first, got[zero_first])
    if nans > 0:
        integers[NAN_COUNT] += nans
        integers[REACH] = max(integers[REACH], start + nan_last)
        keep_first(integers, results, NAN_FIRST, start + nan_first, got[nan_first])
    return True
