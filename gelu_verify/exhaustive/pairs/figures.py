"""What an engine finds in rows of pairs: the figures, and which elements need thought."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np
import torch

from gelu_verify.formats import Format
from gelu_verify.measure import histogram
from gelu_verify.measure.regions import REGIONS

#: The limits of the two contracts that no allowance loosens: an error beyond breaks them.
PLAIN_LIMITS = (0.5, math.nextafter(1.0, 0.0))


@dataclass(frozen=True)
class Limits:
    """Numbers of a format that an engine needs.

    overflow: from this exact value on, in size, an infinity is due. flag_from: the error in ULP
    from which an element is judged by a contract with allowances.
    """

    precision: int
    emin: int
    overflow: float
    flag_from: float

    @classmethod
    def of(cls, fmt: Format, flag_from: float) -> Limits:
        """Return the limits of a format; the tie at 2^emax·(2 - 2^-p) rounds to infinity."""
        overflow = 2.0**fmt.emax * (2.0 - 2.0**-fmt.precision)
        return cls(fmt.precision, fmt.emin, overflow, flag_from)


@dataclass
class Figures:
    """Figures over rows of pairs, by region; an element's index is row·65536 + column.

    sums: int64 (regions, 4): count; signed errors and squares as ``RegionSummary`` keeps them
        (squares above 2^8 apart). clipped: int64 (regions,). histogram: int64 (regions, bins).
    largest, largest_at: float64 and int64 (regions,), -1 where a region has no element.
    finite: pairs whose argument of the activation is finite.
    beyond, beyond_first: int64 (2,): errors beyond the plain limits, and the first of each; of
        pairs with a finite argument of the activation, as the others are not judged.
    zeros: int64 (3, 2): zeros of the wrong sign, the first and the worst of them (by its error,
        ``zero_worst``, float64 (2,)); of all pairs, and of those that are judged. They can be a
        quarter of all pairs, so they are not flagged.
    flagged: int64 indices of the elements that can have a class or an open verdict, or need an
        allowance; on the engine's device, in any order.
    """

    flagged: torch.Tensor
    finite: int = 0
    sums: np.ndarray = field(default_factory=lambda: np.zeros((len(REGIONS), 4), np.int64))
    clipped: np.ndarray = field(default_factory=lambda: np.zeros(len(REGIONS), np.int64))
    histogram: np.ndarray = field(
        default_factory=lambda: np.zeros((len(REGIONS), histogram.BIN_COUNT), np.int64)
    )
    largest: np.ndarray = field(default_factory=lambda: np.full(len(REGIONS), -1.0))
    largest_at: np.ndarray = field(default_factory=lambda: np.full(len(REGIONS), -1, np.int64))
    beyond: np.ndarray = field(default_factory=lambda: np.zeros(2, np.int64))
    beyond_first: np.ndarray = field(default_factory=lambda: np.full(2, -1, np.int64))
    zeros: np.ndarray = field(default_factory=lambda: np.array([[0, 0], [-1, -1], [-1, -1]]))
    zero_worst: np.ndarray = field(default_factory=lambda: np.full(2, -1.0))
