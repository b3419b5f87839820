"""Figures of every span of one function: what an engine leaves, added up over many calls.

An *engine* measures the kernel's output call by call and adds to rows of integers and floats a
span; :mod:`gelu_verify.exhaustive.settled` turns the rows into a census once, at the end. An
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


#: Sets that elements beyond 4 ULP are settled in. One of four says by what it holds the built-in
#: contracts, the first reason that covers it; one of three its class, if it has one.
GUARDED, CANCELLED, APPROXIMATED, UNCOVERED = range(4)
COLLAPSED, FLUSHED, OPPOSITE = range(4, 7)
SETS = 7


class Size(IntEnum):
    """Columns of the floats of a row: sizes in ULP, float64; then the largest error of each set."""

    WORST = 0  # largest error among finite results
    BACK = 1  # largest step back
    LOWEST = 2  # smallest signed error among finite results, infinity before any
    HIGHEST = 3  # largest, likewise
    SET = 4


SIZES = Size.SET + SETS


class Column(IntEnum):
    """Columns of the integers of a row. The first are patterns of samples.

    The sums are those of ``measure.summary``, in two parts: value = low + high·2^32, because
    clipped errors of a span may add up beyond 2^63.
    """

    WORST_AT = 0  # the largest error, the smallest of equals
    HALF_FIRST = 1  # smallest pattern of a settled error beyond 1/2 ULP
    ONE_FIRST = 2  # the same beyond 1 ULP
    BACK_AT = 3  # the largest step back
    ZERO_FIRST = 4  # smallest pattern of a +0 where -0 is due, flat spans only
    NAN_FIRST = 5  # smallest pattern of a NaN, flat spans only
    SET_FIRST = 6  # of each set
    SET_WORST_AT = 13  # of each set
    SET_COUNT = 20  # of each set
    HALF = 27
    ONE = 28
    BACK = 29
    ZERO = 30
    NAN = 31
    REACH = 32  # largest pattern whose result is not saturated; -1: none
    CLIPPED = 33
    SIGNED_LOW = 34
    SIGNED_HIGH = 35
    SMALL_LOW = 36
    SMALL_HIGH = 37
    LARGE_LOW = 38
    LARGE_HIGH = 39
    INPUTS = 40  # patterns measured


#: The first columns are patterns of samples, whose results are kept too.
SAMPLES = int(Column.SET_COUNT)
COLUMNS = Column.INPUTS + 1


@dataclass(frozen=True)
class Figures:
    """One row a span of the function, S of them.

    sizes: float64 (S, SIZES), see :class:`Size`; integers: int64 (S, COLUMNS), see :class:`Column`;
    results: int32 (S, SAMPLES), what the kernel gave for the samples; counts: int64 (S, BIN_COUNT).
    """

    sizes: np.ndarray
    integers: np.ndarray
    results: np.ndarray
    counts: np.ndarray

    @classmethod
    def empty(cls, rows: int) -> Figures:
        """Return rows in which nothing was found yet."""
        integers = np.zeros((rows, COLUMNS), dtype=np.int64)
        integers[:, :SAMPLES] = NONE
        integers[:, Column.REACH] = -1
        sizes = np.zeros((rows, SIZES))
        sizes[:, Size.LOWEST], sizes[:, Size.HIGHEST] = np.inf, -np.inf
        return cls(
            sizes,
            integers,
            np.zeros((rows, SAMPLES), dtype=np.int32),
            np.zeros((rows, histogram.BIN_COUNT), dtype=np.int64),
        )

    @classmethod
    def of(cls, formula: str, derivative: int) -> Figures:
        """Return empty rows for the spans of a function."""
        return cls.empty(len(spans(formula, derivative)))
