"""What an engine measures in one call: the stretches of its spans, by kind of work.

A stretch is what a call has of one span. A kernel cuts it into pieces of a fixed length by itself,
from the number of the first piece of every stretch.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, lru_cache

import numpy as np

from gelu_verify.exhaustive.spans import Span, Zone, spans, turning_pattern

#: Patterns a program of a GPU measures, PART at a time: two a thread of four warps, more would not
#: fit in the registers of several programs on one multiprocessor. Fewer than 32 parts.
PART = 256
PIECE = 28 * PART
#: Patterns a program of a GPU compares in a flat span, FLAT_PART at a time.
FLAT_PART = 2048
FLAT_PIECE = 64 * FLAT_PART

#: What a flat stretch must hold, as ``kind``.
FLAT_KINDS = {Zone.FLAT_ZERO: 0, Zone.FLAT_IDENTITY: 1, Zone.FLAT_HALF: 2, Zone.NAN: 3}
#: Bits of ``kind`` of the others: f falls from pattern to pattern; its first element has no order
#: with the one before; x/2 falls between two subnormals, so that half of all errors are exactly
#: 1/2, and what is due is known as an integer.
FALLING, UNORDERED, TIES = 1, 2, 4
_TIES_BELOW = 2 << 23
_SIGN = 1 << 31


@dataclass(frozen=True)
class Stretches:
    """Stretches of one kind of work: int64 (R, 5), a row each, and how many pieces they make.

    Columns: first pattern, pattern after the last, number of its first piece, kind, row of the
    span in the figures.
    """

    table: np.ndarray
    pieces: int

    def __len__(self) -> int:
        return len(self.table)


@dataclass(frozen=True)
class WorkList:
    """Stretches of one call: flat, next to 0 (series), the rest (full), and infinities."""

    flat: Stretches
    series: Stretches
    full: Stretches
    infinite: tuple[tuple[int, int], ...]


@dataclass(frozen=True)
class Stretch:
    """Patterns ``start`` to ``stop - 1``, all of one span; row: its row in the figures."""

    span: Span
    start: int
    stop: int
    row: int
    kind: int


@cache
def _starts(formula: str, derivative: int) -> tuple[list[int], list[int]]:
    """Return the first patterns of all spans, and their kinds."""
    table = spans(formula, derivative)
    return [s.start for s in table], [_kind(s, formula, derivative) for s in table]


def stretches(formula: str, derivative: int, start: int, stop: int) -> Iterator[Stretch]:
    """Yield the stretches of patterns ``start`` to ``stop - 1`` of one function."""
    starts, kinds = _starts(formula, derivative)
    table = spans(formula, derivative)
    row = bisect_right(starts, start) - 1
    while row < len(table) and starts[row] < stop:
        span = table[row]
        low, kind = max(start, span.start), kinds[row]
        if low > span.start and span.zone not in FLAT_KINDS:
            kind &= ~UNORDERED  # which only the first of a span can be
        yield Stretch(span, low, min(stop, span.stop), row, kind)
        row += 1


@lru_cache(maxsize=64)
def work_list(formula: str, derivative: int, start: int, stop: int) -> WorkList:
    """Return the work on patterns ``start`` to ``stop - 1`` of one function."""
    rows: dict[str, list[Stretch]] = {"flat": [], "series": [], "full": [], "infinite": []}
    for part in stretches(formula, derivative, start, stop):
        zone = part.span.zone
        rows["flat" if zone in FLAT_KINDS else zone.value].append(part)
    return WorkList(
        _stretches(rows["flat"], FLAT_PIECE),
        _stretches(rows["series"], PIECE),
        _stretches(rows["full"], PIECE),
        tuple((part.start, part.stop) for part in rows["infinite"]),
    )


def _kind(span: Span, formula: str, derivative: int) -> int:
    if span.zone in FLAT_KINDS:
        return FLAT_KINDS[span.zone]
    turning = turning_pattern(formula)
    falling = span.negative and span.start <= turning
    unordered = span.start in (0, _SIGN, turning + 1)
    ties = derivative == 0 and (span.start & (_SIGN - 1)) < _TIES_BELOW
    return FALLING * falling + UNORDERED * unordered + TIES * ties


def _stretches(parts: list[Stretch], size: int) -> Stretches:
    rows = [(part.start, part.stop, 0, part.kind, part.row) for part in parts]
    table = np.array(rows, dtype=np.int64).reshape(-1, 5)
    counts = -(-(table[:, 1] - table[:, 0]) // size)
    table[:, 2] = np.cumsum(counts) - counts
    return Stretches(table, int(counts.sum()))
