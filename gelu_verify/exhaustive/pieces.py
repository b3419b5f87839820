"""The work list of a GPU pass: every span cut into pieces, as arrays on the device.

Pieces are cut at multiples of their size in the patterns, so that a call of the kernel under test
on an aligned range covers whole pieces.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

import numpy as np
import torch

from gelu_verify.exhaustive.spans import Span, Zone, spans, turning_pattern

#: Patterns a program measures at once.
PIECE = 4096
#: Patterns a program compares in a flat span, PIECE at a time.
FLAT_PIECE = 32 * PIECE

_FLAT_KINDS = {Zone.FLAT_ZERO: 0, Zone.FLAT_IDENTITY: 1, Zone.FLAT_HALF: 2}
#: x/2 falls between subnormals here, so half of all errors are exactly 1/2: the general way.
_TIES_BELOW = 2 << 23


@dataclass(frozen=True)
class Pieces:
    """Pieces of one kind, ascending: tensors (N,) on the device, and the starts as an array.

    starts, counts: int64 patterns and how many; spans: int32 index of the span; kinds: int32, of
    flat pieces the zone, of others the direction (0 rising, 1 falling, 2 rising from its second).
    """

    starts: torch.Tensor
    counts: torch.Tensor
    spans: torch.Tensor
    kinds: torch.Tensor
    edges: np.ndarray

    def within(self, start: int, stop: int) -> Pieces:
        """Return the pieces that lie in [start, stop)."""
        low, high = np.searchsorted(self.edges, (start, stop))
        part = slice(int(low), int(high))
        return Pieces(
            self.starts[part],
            self.counts[part],
            self.spans[part],
            self.kinds[part],
            self.edges[part],
        )

    def __len__(self) -> int:
        return len(self.edges)


@dataclass(frozen=True)
class WorkList:
    """All pieces of a function: flat, next to 0 (series), the rest (full), and other spans."""

    flat: Pieces
    series: Pieces
    full: Pieces
    other: tuple[Span, ...]


@cache
def work_list(formula: str, derivative: int, device: torch.device) -> WorkList:
    """Return the work list of one function over all patterns of fp32."""
    rows: dict[str, list[tuple[int, int, int, int]]] = {"flat": [], "series": [], "full": []}
    other = []
    turning = turning_pattern(formula)
    for index, span in enumerate(spans(formula, derivative)):
        kind = _kind(span)
        if kind is None:
            other.append(span)
            continue
        size = FLAT_PIECE if kind == "flat" else PIECE
        for start, count in _cut(span, size):
            direction = _FLAT_KINDS.get(span.zone, int(span.negative and start <= turning))
            if kind != "flat" and start == turning + 1:
                direction = 2
            rows[kind].append((start, count, index, direction))
    flat, near_zero, full = (_pieces(rows[kind], device) for kind in ("flat", "series", "full"))
    return WorkList(flat, near_zero, full, tuple(other))


def _kind(span: Span) -> str | None:
    if span.zone in _FLAT_KINDS:
        return "flat"
    if span.zone is Zone.FULL:
        return "full"
    if span.zone is Zone.SERIES and (span.start & 0x7FFF_FFFF) >= _TIES_BELOW:
        return "series"
    return None


def _cut(span: Span, size: int) -> Iterator[tuple[int, int]]:
    start = span.start
    while start < span.stop:
        stop = min(span.stop, (start // size + 1) * size)
        yield start, stop - start
        start = stop


def _pieces(rows: list[tuple[int, int, int, int]], device: torch.device) -> Pieces:
    table = np.array(rows, dtype=np.int64).reshape(-1, 4)
    columns = [torch.from_numpy(table[:, c].copy()).to(device) for c in range(4)]
    return Pieces(columns[0], columns[1], columns[2].int(), columns[3].int(), table[:, 0].copy())
