"""What a sweep found, as counts, maxima and sums that merge exactly.

Any split of the inputs into batches, added in any order, gives the identical summary, bit for bit:
counts and sums are integers, maxima break ties by the smallest input pattern. Sums of errors are
kept in fixed point, each error rounded once by itself:

- signed error: units of 2^-20 ULP, an error beyond 2^24 ULP entered as ±2^24 (and counted as
  ``clipped``, so that a mean over clipped errors is known to be too small);
- squared error: units of 2^-20 ULP² for errors up to 2^8, of 2^4 ULP² above.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np
import torch

from gelu_verify.measure import histogram
from gelu_verify.measure.error import Class, Errors
from gelu_verify.measure.regions import REGIONS, Region

#: Errors are added in units of 1 / UNIT ULP.
UNIT = 2.0**20
_CLIP = 2.0**24
_SQUARE_SPLIT = 2.0**8
_LARGE_SQUARE_UNIT = 2.0**4
#: Errors of at most 2^24 in units of 2^-20 are below 2^44; so many of them fit in an int64.
LARGEST_BATCH = 1 << 18


@dataclass(frozen=True, order=True)
class Sample:
    """One element: its input patterns, the kernel's output pattern, its signed error in ULP."""

    inputs: tuple[int, ...]
    actual: int
    error_ulp: float


@dataclass(frozen=True)
class Batch:
    """What is added to a summary at once: N elements.

    inputs: int64 bit patterns of each argument, each (N,); actual: of the outputs, (N,).
    regions: indices into ``REGIONS``, int64 (N,), -1 for inputs that are not finite.
    """

    inputs: tuple[torch.Tensor, ...]
    actual: torch.Tensor
    regions: torch.Tensor
    errors: Errors

    def select(self, members: torch.Tensor) -> Batch:
        """Return the elements with the given indices."""
        inputs = tuple(bits[members] for bits in self.inputs)
        errors = self.errors.select(members)
        return Batch(inputs, self.actual[members], self.regions[members], errors)

    def sample(self, index: int) -> Sample:
        """Return one element."""
        patterns = tuple(int(bits[index]) for bits in self.inputs)
        return Sample(patterns, int(self.actual[index]), float(self.errors.ulp[index]))

    def first_of(self, candidates: torch.Tensor) -> Sample:
        """Return the candidate (indices, at least one) with the smallest input patterns.

        The same inputs may come twice with different results, from a kernel that is not
        deterministic: then the smaller result pattern.
        """
        for bits in (*self.inputs, self.actual):
            values = bits[candidates]
            candidates = candidates[values == values.min()]
        return self.sample(int(candidates[0]))

    def worst_of(self, candidates: torch.Tensor) -> Sample:
        """Return the candidate with the largest error, the smallest patterns among equals."""
        error = self.errors.ulp[candidates].abs().nan_to_num(nan=-1.0)
        return self.first_of(candidates[error == error.max()])


def worse(one: Sample | None, other: Sample | None) -> Sample | None:
    """Return the sample with the larger error; among equals the smaller input patterns."""
    if one is None or other is None:
        return one or other
    key_one, key_other = _size(one), _size(other)
    if key_one != key_other:
        return one if key_one > key_other else other
    return min(one, other, key=_patterns)


def earlier(one: Sample | None, other: Sample | None) -> Sample | None:
    """Return the sample with the smaller input patterns."""
    if one is None or other is None:
        return one or other
    return min(one, other, key=_patterns)


def _patterns(sample: Sample) -> tuple[tuple[int, ...], int]:
    return sample.inputs, sample.actual


def _size(sample: Sample) -> float:
    return -1.0 if sample.error_ulp != sample.error_ulp else abs(sample.error_ulp)


@dataclass
class RegionSummary:
    """The ULP figures of one region: only elements with a distance are in it."""

    count: int = 0
    clipped: int = 0
    signed_sum: int = 0
    small_square_sum: int = 0
    large_square_sum: int = 0
    worst: Sample | None = None
    histogram: np.ndarray = field(
        default_factory=lambda: np.zeros(histogram.BIN_COUNT, dtype=np.int64)
    )

    def add(self, batch: Batch, members: torch.Tensor) -> None:
        """Add the elements with the given indices (at most ``LARGEST_BATCH``)."""
        self.add_errors(batch.errors.ulp[members])
        self.worst = worse(self.worst, batch.worst_of(members))

    def add_errors(self, error: torch.Tensor) -> float:
        """Add signed errors (N,), N at most ``LARGEST_BATCH``, to all figures but ``worst``.

        Returns the largest absolute error, for which the caller finds the input.
        """
        size = error.abs()
        largest = float(size.max())
        self.count += error.numel()
        self.histogram += histogram.count(size)
        if largest <= _SQUARE_SPLIT:
            # 2^18 integers of at most 2^36 add up below 2^54, and every partial sum is exact in
            # float64 in any order while it is below 2^53: halves are summed apart.
            self.signed_sum += _exact_sum(error.mul(UNIT).round_())
            self.small_square_sum += _exact_sum(size.square_().mul_(UNIT).round_())
            return largest
        self.clipped += int((size > _CLIP).sum())
        self.signed_sum += int(torch.round(error.clamp(-_CLIP, _CLIP) * UNIT).long().sum())
        square = size.clamp(max=_CLIP).square()
        small = size <= _SQUARE_SPLIT
        self.small_square_sum += int(torch.round(square[small] * UNIT).long().sum())
        self.large_square_sum += int(torch.round(square[~small] / _LARGE_SQUARE_UNIT).long().sum())
        return largest

    def merge(self, other: RegionSummary) -> None:
        """Add another summary of the same region."""
        self.count += other.count
        self.clipped += other.clipped
        self.signed_sum += other.signed_sum
        self.small_square_sum += other.small_square_sum
        self.large_square_sum += other.large_square_sum
        self.worst = worse(self.worst, other.worst)
        self.histogram += other.histogram

    @property
    def max_error_ulp(self) -> float:
        """The largest error, in ULP; 0 for no elements."""
        return abs(self.worst.error_ulp) if self.worst else 0.0

    @property
    def mean_error_ulp(self) -> float:
        """The signed mean error, in ULP."""
        return self.signed_sum / UNIT / self.count if self.count else float("nan")

    @property
    def rms_error_ulp(self) -> float:
        """The root mean square error, in ULP."""
        total = self.small_square_sum / UNIT + self.large_square_sum * _LARGE_SQUARE_UNIT
        return float(np.sqrt(total / self.count)) if self.count else float("nan")


def _exact_sum(integers: torch.Tensor) -> int:
    """Return the sum of integral float64 values of at most 2^36, N at most 2^18, exactly."""
    return sum(int(part.sum()) for part in integers.split(LARGEST_BATCH // 2))


@dataclass
class ClassTally:
    """How often a class of failure was seen, its first input and its worst."""

    count: int = 0
    first: Sample | None = None
    worst: Sample | None = None

    def add(self, batch: Batch, members: torch.Tensor) -> None:
        """Add the elements with the given indices."""
        self.count += members.numel()
        self.first = earlier(self.first, batch.first_of(members))
        self.worst = worse(self.worst, batch.worst_of(members))

    def merge(self, other: ClassTally) -> None:
        """Add another tally of the same class."""
        self.count += other.count
        self.first = earlier(self.first, other.first)
        self.worst = worse(self.worst, other.worst)


@dataclass
class Summary:
    """Everything a sweep found, by region, plus the classes of failure."""

    inputs: int = 0
    finite_inputs: int = 0
    regions: dict[Region, RegionSummary] = field(
        default_factory=lambda: {region: RegionSummary() for region in REGIONS}
    )
    classes: dict[Class, ClassTally] = field(default_factory=dict)

    def add(self, batch: Batch) -> None:
        """Add a batch of any size."""
        self.inputs += len(batch.errors)
        self.finite_inputs += int((batch.regions >= 0).sum())
        usable = torch.where(batch.errors.finite, batch.regions, -1)
        for code, region in enumerate(REGIONS):
            members = (usable == code).nonzero().flatten()
            for part in members.split(LARGEST_BATCH):
                if part.numel():
                    self.regions[region].add(batch, part)
        self.add_classes(batch)

    def add_classes(self, batch: Batch) -> None:
        """Add the elements of a batch that have a class, to the classes alone."""
        for cls in Class:
            members = (batch.errors.classes == int(cls)).nonzero().flatten()
            if cls is not Class.NONE and members.numel():
                self.classes.setdefault(cls, ClassTally()).add(batch, members)

    def merge(self, other: Summary) -> None:
        """Add another summary: the result does not depend on order or grouping."""
        self.inputs += other.inputs
        self.finite_inputs += other.finite_inputs
        for region in REGIONS:
            self.regions[region].merge(other.regions[region])
        for cls, tally in other.classes.items():
            self.classes.setdefault(cls, ClassTally()).merge(tally)

    def total(self) -> RegionSummary:
        """Return the figures over all regions together."""
        return merged(self.regions.values())


def merged(parts: Iterable[RegionSummary]) -> RegionSummary:
    """Return one summary of several regions."""
    total = RegionSummary()
    for part in parts:
        total.merge(part)
    return total
