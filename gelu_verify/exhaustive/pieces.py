"""What an engine measures in one call: the stretches of its spans, by kind of work.

A stretch is what a call has of one span. A kernel cuts it into pieces of a fixed length by itself,
from the number of the first piece of every stretch.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from gelu_verify.exhaustive.spans import Span, Zone, spans, turning_pattern

#: Patterns a program of a GPU measures at once.
PIECE = 4096
#: Patterns a program of a GPU compares in a flat span, PIECE at a time.
FLAT_PIECE = 32 * PIECE

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
    infinite: tuple[Span, ...]


@lru_cache(maxsize=4096)
def work_list(formula: str, derivative: int, start: int, stop: int) -> WorkList:
    """Return the work on patterns ``start`` to ``stop - 1`` of one function."""
    rows: dict[str, list[tuple[int, int, int, int]]] = {"flat": [], "series": [], "full": []}
    infinite = []
    for row, span in enumerate(spans(formula, derivative)):
        part = span.clipped(start, stop)
        if part is None:
            continue
        if span.zone is Zone.INFINITE:
            infinite.append(part)
            continue
        name = "flat" if span.zone in FLAT_KINDS else span.zone.value
        rows[name].append((part.start, part.stop, _kind(part, formula, derivative), row))
    return WorkList(
        _stretches(rows["flat"], FLAT_PIECE),
        _stretches(rows["series"], PIECE),
        _stretches(rows["full"], PIECE),
        tuple(infinite),
    )


def _kind(part: Span, formula: str, derivative: int) -> int:
    if part.zone in FLAT_KINDS:
        return FLAT_KINDS[part.zone]
    turning = turning_pattern(formula)
    falling = part.negative and part.start <= turning
    unordered = part.start in (0, _SIGN, turning + 1)
    ties = derivative == 0 and (part.start & (_SIGN - 1)) < _TIES_BELOW
    return FALLING * falling + UNORDERED * unordered + TIES * ties


def _stretches(rows: list[tuple[int, int, int, int]], size: int) -> Stretches:
    table = np.array(rows, dtype=np.int64).reshape(-1, 4)
    counts = -(-(table[:, 1] - table[:, 0]) // size)
    first = np.cumsum(counts) - counts
    table = np.ascontiguousarray(np.insert(table, 2, first, axis=1))
    return Stretches(table, int(counts.sum()))
