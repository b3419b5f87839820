"""Numbers of the loops, as plain integers and floats that Numba freezes: columns, masks, units."""

from __future__ import annotations

import numpy as np

from gelu_verify.exhaustive.figures import Column, Size
from gelu_verify.measure import histogram

#: Elements of a chunk.
CHUNK = 1024
LAST_BIN = histogram.BIN_COUNT - 1
LOWEST_BIN = histogram.OFFSET
SIGN = 1 << 31
MAGNITUDE = 0x7FFF_FFFF
MAGNITUDE_64 = 0x7FFF_FFFF_FFFF_FFFF
ONE = 0x3F80_0000
HALF = 0x3F00_0000
INFINITY = 0x7F80_0000
BINADE = 1 << 23
UNIT = 2.0**20
CLIP = 2.0**24
SPLIT = 2.0**8
#: A verdict this near, relative, is left to the judge.
NEAR = 1e-7
#: Added to a number below 2^51 it leaves the nearest integer in the last bits.
MAGIC = 1.5 * 2.0**52
MAGIC_BITS = int(np.float64(MAGIC).view(np.int64))
FAR_FROM = 4.0
OPEN_LEVEL = -1

WORST_AT, HALF_FIRST, ONE_FIRST = (
    int(Column.WORST_AT),
    int(Column.HALF_FIRST),
    int(Column.ONE_FIRST),
)
BACK_AT, ZERO_FIRST, NAN_FIRST = (
    int(Column.BACK_AT),
    int(Column.ZERO_FIRST),
    int(Column.NAN_FIRST),
)
SET_FIRST, SET_WORST_AT, SET_COUNT = (
    int(Column.SET_FIRST),
    int(Column.SET_WORST_AT),
    int(Column.SET_COUNT),
)
HALF_COUNT, ONE_COUNT, BACK_COUNT, ZERO_COUNT, NAN_COUNT = (
    int(Column.HALF),
    int(Column.ONE),
    int(Column.BACK),
    int(Column.ZERO),
    int(Column.NAN),
)
REACH, CLIPPED, SIGNED = int(Column.REACH), int(Column.CLIPPED), int(Column.SIGNED_LOW)
WORST, BACK_SIZE, SET_SIZE = int(Size.WORST), int(Size.BACK), int(Size.SET)
LOWEST, HIGHEST = int(Size.LOWEST), int(Size.HIGHEST)
