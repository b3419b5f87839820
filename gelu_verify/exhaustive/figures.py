"""Figures of every span of one function: what an engine leaves, added up over many calls.

An *engine* measures the kernel's output call by call and adds to rows of integers and two floats a
span; :mod:`gelu_verify.exhaustive.settling` turns the rows into a census once, at the end. An
element is either *settled* in the rows, or *selected*: handed over to be judged by itself. The
error figures (largest, sums, histogram) hold both.

All is counts, sums, smallest patterns and largest sizes, so that any split into calls and any order
give the same rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

import numpy as np

from gelu_verify.exhaustive.spans import spans
from gelu_verify.measure import histogram

#: Where no pattern was found: above all of them.
NONE = 1 << 32


class Size(IntEnum):
    """Columns of the floats of a row: sizes in ULP, float64."""

    WORST = 0  # largest error among finite results
    BACK = 1  # largest step back


class Column(IntEnum):
    """Columns of the integers of a row. The sums are those of ``measure.summary``, in two parts:
    value = low + high·2^32, because clipped errors of a span may add up beyond 2^63.
    """

    WORST_AT = 0  # samples first: pattern of the largest error, the smallest of equals
    HALF_FIRST = 1  # smallest pattern of a settled error beyond 1/2 ULP
    ONE_FIRST = 2  # the same beyond 1 ULP
    BACK_AT = 3  # pattern of the largest step back
    ZERO_FIRST = 4  # smallest pattern of a +0 where -0 is due, flat spans only
    NAN_FIRST = 5  # smallest pattern of a NaN, flat spans only
    HALF = 6
    ONE = 7
    BACK = 8
    ZERO = 9
    NAN = 10
    REACH = 11  # largest pattern whose result is not saturated; -1: none
    CLIPPED = 12
    SIGNED_LOW = 13
    SIGNED_HIGH = 14
    SMALL_LOW = 15
    SMALL_HIGH = 16
    LARGE_LOW = 17
    LARGE_HIGH = 18
    INPUTS = 19  # patterns measured


#: The first columns are patterns of samples, whose results are kept too.
SAMPLES = 6


@dataclass(frozen=True)
class Figures:
    """One row a span of the function, S of them.

    sizes: float64 (S, 2), see :class:`Size`; integers: int64 (S, 20), see :class:`Column`;
    results: int32 (S, 6), what the kernel gave for the samples; counts: int64 (S, BIN_COUNT).
    """

    sizes: np.ndarray
    integers: np.ndarray
    results: np.ndarray
    counts: np.ndarray

    @classmethod
    def empty(cls, rows: int) -> Figures:
        """Return rows in which nothing was found yet."""
        integers = np.zeros((rows, len(Column)), dtype=np.int64)
        integers[:, :SAMPLES] = NONE
        integers[:, Column.REACH] = -1
        return cls(
            np.zeros((rows, len(Size))),
            integers,
            np.zeros((rows, SAMPLES), dtype=np.int32),
            np.zeros((rows, histogram.BIN_COUNT), dtype=np.int64),
        )

    @classmethod
    def of(cls, formula: str, derivative: int) -> Figures:
        """Return empty rows for the spans of a function."""
        return cls.empty(len(spans(formula, derivative)))
