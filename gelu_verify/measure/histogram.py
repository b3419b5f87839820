"""A histogram of log2(error in ULP) with four bins an octave: mergeable, and exact counts.

Bin 0 holds errors below ``2^LOWEST`` (exact results among them), the last bin those of
``2^HIGHEST`` and more. A quantile read from it is the upper edge of its bin: never an underestimate
and at most 25 % above the true one.
"""

from __future__ import annotations

import numpy as np
import torch

from gelu_verify.errors import EmptySampleError

LOWEST = -16
HIGHEST = 40
BINS_PER_OCTAVE = 4
BIN_COUNT = (HIGHEST - LOWEST) * BINS_PER_OCTAVE + 2

#: The two leading fraction bits of a float64 select the bin within the octave; linear, so the
#: inner edges are 1, 1.25, 1.5 and 1.75 times a power of two.
_SHIFT = 50
OFFSET = (1023 + LOWEST) * BINS_PER_OCTAVE - 1


def bins(error: torch.Tensor) -> torch.Tensor:
    """Return the bin (int64) of every absolute error (float64, finite, not negative)."""
    return ((error.view(torch.int64) >> _SHIFT) - OFFSET).clamp_(0, BIN_COUNT - 1)


def count(error: torch.Tensor) -> np.ndarray:
    """Return the int64 counts (BIN_COUNT,) of absolute errors."""
    return torch.bincount(bins(error), minlength=BIN_COUNT).cpu().numpy()


def upper_edge(index: int) -> float:
    """Return the smallest error above a bin, in ULP; infinity for the last one."""
    if index >= BIN_COUNT - 1:
        return float("inf")
    octave, quarter = divmod(index, BINS_PER_OCTAVE)
    return float(2.0 ** (LOWEST + octave) * (1 + quarter / BINS_PER_OCTAVE))


def quantile(counts: np.ndarray, fraction: float) -> float:
    """Return an upper bound of the error that ``fraction`` of the elements do not exceed."""
    total = int(counts.sum())
    if total == 0:
        raise EmptySampleError("quantile: got no errors, expected at least one.")
    rank = min(total, max(1, int(np.ceil(fraction * total))))
    return upper_edge(int(np.searchsorted(np.cumsum(counts), rank)))
