"""Bins of signed errors in ULP, the same for every region, kernel and format: counts add.

Bin 0 holds errors that are exactly 0. Bin ``±k``, k >= 1, holds errors of that sign whose size is
in ``[edge(k), edge(k + 1))``. The edges are

- ``(k - 1) / 128`` up to 4 ULP (``LINEAR`` bins): so fine that neither a shift of 0.01 ULP nor the
  borders of rounding (0.5, 1) are lost in a bin;
- from there 32 to an octave, a bin being at most 3.2 % of its lower edge wide, up to 2^24 ULP,
  beyond which all are in bin ``LAST``.

The index rises with the error, so that ranks and empirical distribution functions at the edges are
those of the errors themselves. The edges are multiples of 2^-7 and exact in float64.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np

#: Bins a ULP up to ``LINEAR_TO``, and bins an octave from there to ``CLIP``.
PER_ULP = 128
LINEAR_TO = 4.0
PER_OCTAVE = 32
#: Errors beyond it enter sums as this many ULP.
CLIP = 2.0**24

LINEAR = int(LINEAR_TO * PER_ULP)
_OCTAVES = 22
#: The index of the outermost bin.
LAST = LINEAR + _OCTAVES * PER_OCTAVE + 1


def indices(errors: np.ndarray) -> np.ndarray:
    """Return the bin, int64 (N,), of finite errors in ULP, float64 (N,)."""
    import numpy as np

    size = np.minimum(np.abs(errors), CLIP)
    fraction, exponent = np.frexp(size)  # size = fraction · 2^exponent, fraction in [1/2, 1)
    octave = exponent.astype(np.int64) - 3  # 0 for [4, 8)
    beyond = LINEAR + PER_OCTAVE * octave + np.floor((2 * fraction - 1) * PER_OCTAVE).astype(int)
    inner = np.floor(np.minimum(size, LINEAR_TO) * PER_ULP).astype(np.int64)
    place = np.where(size < LINEAR_TO, inner, beyond) + 1
    return np.sign(errors).astype(np.int64) * place


@cache
def edge(index: int) -> float:
    """Return the smallest size in ULP of an error in bin ``±index``, ``1 <= index <= LAST``.

    ``edge(LAST)`` is ``CLIP``; there is no upper edge beyond it.
    """
    place = index - 1
    if place <= LINEAR:
        return place / PER_ULP
    octave, part = divmod(place - LINEAR, PER_OCTAVE)
    return float(LINEAR_TO * 2.0**octave * (1 + part / PER_OCTAVE))


def upper(index: int) -> float:
    """Return what every size in bin ``±index`` is below; 0 for bin 0, infinity for the last."""
    if index == 0:
        return 0.0
    return float("inf") if abs(index) == LAST else edge(abs(index) + 1)


@cache
def representative(index: int) -> float:
    """Return the middle of a bin, in ULP, signed: at most half a bin from any error in it."""
    if index == 0:
        return 0.0
    size = abs(index)
    middle = CLIP if size == LAST else (edge(size) + edge(size + 1)) / 2
    return middle if index > 0 else -middle


def first_at(limit_ulp: float) -> int:
    """Return the smallest index all of whose errors are at least ``limit_ulp`` in size.

    A limit that is no edge is taken as the next edge above it; beyond ``CLIP`` as ``CLIP``.
    """
    import numpy as np

    index = int(abs(indices(np.array([limit_ulp]))[0]))
    return index if index == LAST or edge(max(index, 1)) >= limit_ulp else index + 1
