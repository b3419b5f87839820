"""Signed errors of one region as integers: any split of them, in any order, gives equal records.

Sums are in fixed point like those of ``measure.summary``: each error is rounded once, by itself, to
a multiple of 2^-20 ULP, and one beyond 2^24 ULP enters as ±2^24 and is counted as ``clipped``. The
bins (``statistics.bins``) are of the errors themselves.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import cache, reduce
from typing import TYPE_CHECKING, Annotated

from pydantic import Field, model_validator

from gelu_verify.errors import EmptySampleError
from gelu_verify.records.base import Record
from gelu_verify.statistics import bins as edges

if TYPE_CHECKING:
    import numpy as np

UNIT = 2**20
_CLIPPED = 2**24 * UNIT
#: No population is larger: all pairs of fp32 inputs would be 2^64. It bounds what a file can hold.
_MOST = 2**40
_HALF = 22  # bits of the low half of an error of at most 44 bits
_CHUNK = 1 << 18  # its sums of halves fit in 64 bits

Count = Annotated[int, Field(ge=0, le=_MOST)]
Bin = Annotated[int, Field(ge=-edges.LAST, le=edges.LAST)]


class ErrorDistribution(Record):
    """Errors of the results of one region, in ULP.

    Raises a ``ValidationError`` for figures that no errors have: counts that do not add up, sums
    that the bins do not permit, a square of the mean above the mean square.
    """

    count: Count = Field(description="errors that are numbers: those in bins and sums")
    undefined: Count = Field(
        0, description="results without a distance (NaN, infinity): wrong by any limit"
    )
    clipped: Count = Field(0, description="errors beyond 2^24 ULP, entered in sums as 2^24")
    signed_sum: Annotated[int, Field(ge=-_MOST * _CLIPPED, le=_MOST * _CLIPPED)] = Field(
        0, description="in units of 2^-20 ULP"
    )
    absolute_sum: Annotated[int, Field(ge=0, le=_MOST * _CLIPPED)] = Field(
        0, description="of sizes, in units of 2^-20 ULP"
    )
    square_sum: Annotated[int, Field(ge=0, le=_MOST * _CLIPPED**2)] = Field(
        0, description="in units of 2^-40 ULP²"
    )
    bins: Annotated[
        dict[Bin, Annotated[int, Field(ge=1, le=_MOST)]], Field(max_length=2 * edges.LAST + 1)
    ] = Field({}, description="index of statistics.bins to count, ascending")

    @classmethod
    def from_errors(cls, errors: np.ndarray) -> ErrorDistribution:
        """Return the distribution of signed errors in ULP, float64 (N,), N from 0 on.

        NaN and infinite errors are ``undefined``.
        """
        import numpy as np

        errors = np.asarray(errors, dtype=np.float64)
        starts = range(0, max(errors.size, 1), _CHUNK)
        parts = (cls._of_chunk(errors[start : start + _CHUNK]) for start in starts)
        return reduce(cls.merge, parts)

    @classmethod
    def _of_chunk(cls, errors: np.ndarray) -> ErrorDistribution:
        import numpy as np

        finite = errors[np.isfinite(errors)]
        units = np.rint(np.clip(finite, -edges.CLIP, edges.CLIP) * UNIT).astype(np.int64)
        size = np.abs(units)
        high, low = size >> _HALF, size & ((1 << _HALF) - 1)
        squares = [int(np.sum(part)) for part in (high * high, high * low, low * low)]
        index, counts = np.unique(edges.indices(finite), return_counts=True)
        return cls(
            count=finite.size,
            undefined=errors.size - finite.size,
            clipped=int(np.sum(np.abs(finite) > edges.CLIP)),
            signed_sum=int(np.sum(units)),
            absolute_sum=int(np.sum(size)),
            square_sum=(squares[0] << 2 * _HALF) + (squares[1] << _HALF + 1) + squares[2],
            bins=dict(zip(index.tolist(), counts.tolist(), strict=True)),
        )

    @model_validator(mode="after")
    def _figures_agree(self) -> ErrorDistribution:
        if sum(self.bins.values()) != self.count:
            raise ValueError("the counts of the bins must add up to count")
        if self.clipped > self.bins.get(edges.LAST, 0) + self.bins.get(-edges.LAST, 0):
            raise ValueError("clipped errors must be in the outermost bins")
        (low, high), (smallest, largest) = _reach(self.bins)
        slack = self.count  # each error was rounded by at most half a unit
        if not (low - slack <= self.signed_sum <= high + slack):
            raise ValueError("signed_sum must be one of errors in these bins")
        if not (smallest - slack <= self.absolute_sum <= largest + slack):
            raise ValueError("absolute_sum must be one of errors in these bins")
        if not (abs(self.signed_sum) <= self.absolute_sum):
            raise ValueError("signed_sum must not exceed absolute_sum")
        if not (self.absolute_sum**2 <= self.count * self.square_sum):
            raise ValueError("square_sum must be at least the squared sum over the count")
        return self

    def merge(self, other: ErrorDistribution) -> ErrorDistribution:
        """Return the distribution of the errors of both; commutative and associative."""
        counts = dict(self.bins)
        for index, count in other.bins.items():
            counts[index] = counts.get(index, 0) + count
        return ErrorDistribution(
            count=self.count + other.count,
            undefined=self.undefined + other.undefined,
            clipped=self.clipped + other.clipped,
            signed_sum=self.signed_sum + other.signed_sum,
            absolute_sum=self.absolute_sum + other.absolute_sum,
            square_sum=self.square_sum + other.square_sum,
            bins=dict(sorted(counts.items())),
        )

    @property
    def results(self) -> int:
        """How many results there are, those without a distance included."""
        return self.count + self.undefined

    def mean(self) -> float:
        """Return the mean error (bias), ULP; too near zero by what is clipped."""
        return self.signed_sum / (self._required() * UNIT)

    def mean_absolute(self) -> float:
        """Return the mean size of an error, ULP."""
        return self.absolute_sum / (self._required() * UNIT)

    def variance(self, *, of_sizes: bool = False) -> float:
        """Return the variance with n - 1, ULP², of errors or of their sizes; NaN for one error."""
        if self._required() == 1:
            return math.nan
        total = self.absolute_sum if of_sizes else self.signed_sum
        # In integers up to the last division: nothing cancels.
        spread = self.count * self.square_sum - total**2
        return spread / (self.count * (self.count - 1) * UNIT**2)

    def beyond(self, limit_ulp: float) -> int:
        """Return how many results are off by ``limit_ulp`` or more, those without a distance too.

        A limit that is not the edge of a bin counts as the next edge above it; whole ULP are edges
        up to 256.
        """
        first = edges.first_at(limit_ulp)
        return self.undefined + sum(n for index, n in self.bins.items() if abs(index) >= first)

    def sizes(self) -> dict[int, int]:
        """Return the counts of ``|error|`` by bin, ascending."""
        counts: dict[int, int] = {}
        for index, count in self.bins.items():
            counts[abs(index)] = counts.get(abs(index), 0) + count
        return dict(sorted(counts.items()))

    def _required(self) -> int:
        if self.count == 0:
            raise EmptySampleError("error distribution: got no errors, expected at least one.")
        return self.count


def _reach(counts: Mapping[int, int]) -> tuple[tuple[int, int], tuple[int, int]]:
    """Return what the sums of errors, and of their sizes, in the bins lie between, in units."""
    low = high = smallest = largest = 0
    for index, count in counts.items():
        near, far = (count * size for size in _range(abs(index)))
        smallest, largest = smallest + near, largest + far
        low, high = (low + near, high + far) if index >= 0 else (low - far, high - near)
    return (low, high), (smallest, largest)


@cache
def _range(size: int) -> tuple[int, int]:
    """Return the smallest and largest size of an error in a bin, in units; edges are whole."""
    near = edges.edge(size) if size else 0.0
    return int(near * UNIT), int(min(edges.upper(size), edges.CLIP) * UNIT)
