"""Compare two measurements of the same population of inputs: every difference is a fact.

What is compared are the summaries that an exhaustive pass gives anyway (``measure.summary``), by
region. They bound how many results have changed, rigorously and from below: a result whose error
moves to another bin leaves one and enters another, and whoever is beyond an edge now and was not
before has crossed it. Movements within a bin are not seen. Where the results are kept too
(``statistics.outputs``), how many changed is exact.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import accumulate
from typing import TYPE_CHECKING, Annotated

from pydantic import Field, model_validator

from gelu_verify.errors import UsageError
from gelu_verify.records.base import Record

if TYPE_CHECKING:
    from gelu_verify.measure.summary import RegionSummary

_MOST = 1 << 40
_LARGEST_SUM = _MOST << 44
#: ``measure.histogram.BIN_COUNT``, which loads torch.
_BINS = 226
Count = Annotated[int, Field(ge=0, le=_MOST)]
Bin = Annotated[int, Field(ge=0, lt=_BINS)]


class RegionFacts(Record):
    """What a baseline keeps of one region of an exhaustive pass."""

    count: Count = Field(description="results with a distance")
    histogram: Annotated[dict[Bin, Count], Field(max_length=_BINS)] = Field(
        description="bin of measure.histogram to count"
    )
    signed_sum: Annotated[int, Field(ge=-_LARGEST_SUM, le=_LARGEST_SUM)] = Field(
        description="of errors, in units of 2^-20 ULP"
    )
    max_error_ulp: Annotated[float, Field(ge=0)]
    worst_inputs: Annotated[tuple[int, ...], Field(max_length=2)] = Field(
        description="bit patterns of the input with the largest error; empty without results"
    )

    @classmethod
    def of(cls, summary: RegionSummary) -> RegionFacts:
        """Return the facts of a region's summary."""
        return cls(
            count=summary.count,
            histogram={i: int(n) for i, n in enumerate(summary.histogram) if n},
            signed_sum=summary.signed_sum,
            max_error_ulp=summary.max_error_ulp,
            worst_inputs=summary.worst.inputs if summary.worst else (),
        )

    @model_validator(mode="after")
    def _counts_add_up(self) -> RegionFacts:
        if sum(self.histogram.values()) != self.count:
            raise ValueError("the counts of the histogram must add up to count")
        return self

    @property
    def mean_error_ulp(self) -> float:
        """The signed mean error, in ULP; NaN without results."""
        return self.signed_sum / (self.count << 20) if self.count else float("nan")


class Crossing(Record):
    """Results whose error crossed the lower edge of a bin, net of those that crossed back."""

    count: int
    bin: int = Field(description="of measure.histogram; that edge which most crossed")


class RegionDifference(Record):
    """How the results of one region differ, as far as their summaries tell."""

    region: str
    count_before: int = Field(description="differs from count if results gained or lost distance")
    count: int
    changed_at_least: int = Field(description="results that certainly are others")
    worsened: Crossing | None = Field(description="None if no edge was crossed upwards")
    improved: Crossing | None = Field(description="None if no edge was crossed downwards")
    mean_before_ulp: float
    mean_now_ulp: float
    max_before_ulp: float
    max_now_ulp: float
    worst_inputs: tuple[int, ...] = Field(description="bit patterns, of the largest error now")


def differences(
    before: Mapping[str, RegionFacts], now: Mapping[str, RegionFacts]
) -> list[RegionDifference]:
    """Return what differs, for regions whose facts are not the same; none is no proof of sameness.

    Raises UsageError for other regions: those of another formula or format.
    """
    if before.keys() != now.keys():
        raise UsageError(
            f"comparison: got regions {', '.join(now)}, expected {', '.join(before)}. "
            "Measure both with the same formula and format."
        )
    return [
        _difference(region, before[region], now[region])
        for region in before
        if before[region] != now[region]
    ]


def _difference(region: str, old: RegionFacts, new: RegionFacts) -> RegionDifference:
    gains = [new.histogram.get(i, 0) - old.histogram.get(i, 0) for i in range(_BINS)]
    entered, left = sum(max(g, 0) for g in gains), sum(max(-g, 0) for g in gains)
    beyond = list(accumulate(reversed(gains)))[::-1]  # beyond[i]: net gain of bins from i on
    below = [0, *accumulate(gains[:-1])]  # below[i]: net gain of bins before i
    return RegionDifference(
        region=region,
        count_before=old.count,
        count=new.count,
        changed_at_least=max(entered, left),
        worsened=_largest(beyond),
        improved=_largest(below),
        mean_before_ulp=old.mean_error_ulp,
        mean_now_ulp=new.mean_error_ulp,
        max_before_ulp=old.max_error_ulp,
        max_now_ulp=new.max_error_ulp,
        worst_inputs=new.worst_inputs,
    )


def _largest(gains: list[int]) -> Crossing | None:
    """Return the edge with the largest gain; edge 0 is none, as no error is below it."""
    index = max(range(1, len(gains)), key=lambda i: gains[i])
    return Crossing(count=gains[index], bin=index) if gains[index] > 0 else None
