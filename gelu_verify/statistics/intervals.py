"""Intervals: of a proportion, of a mean error, of a quantile. Each says what it assumes."""

from __future__ import annotations

import math
from typing import Annotated

from pydantic import Field

from gelu_verify.errors import EmptySampleError, UsageError
from gelu_verify.records.base import Record
from gelu_verify.statistics import bins as edges
from gelu_verify.statistics.distribution import ErrorDistribution

CONFIDENCE = 0.95


class Interval(Record):
    """An estimate and what the data leave open; unbounded sides are infinite."""

    estimate: float
    low: float
    high: float
    confidence: Annotated[float, Field(gt=0, lt=1)] = CONFIDENCE


def proportion(successes: int, trials: int, confidence: float = CONFIDENCE) -> Interval:
    """Return the Clopper–Pearson interval: it covers at least as often as it says, whatever n is.

    Its limits are quantiles of Beta(k, n - k + 1) and Beta(k + 1, n - k), those at 0 and n are 0
    and 1. Raises EmptySampleError for no trials.
    """
    if trials == 0:
        raise EmptySampleError("proportion: got 0 trials, expected at least one.")
    from scipy import special

    k, n, risk = successes, trials, (1 - confidence) / 2
    return Interval(
        estimate=k / n,
        low=float(special.betaincinv(k, n - k + 1, risk)) if k > 0 else 0.0,
        high=float(special.betaincinv(k + 1, n - k, 1 - risk)) if k < n else 1.0,
        confidence=confidence,
    )


def bias(distribution: ErrorDistribution, confidence: float = CONFIDENCE) -> Interval:
    """Return the mean error in ULP with Student's interval, ``mean ± t·sd/√n``.

    It assumes independent draws and enough of them for the central limit theorem: for errors of
    rounding, a few dozen. One error gives an infinite interval.
    """
    mean, n = distribution.mean(), distribution.count
    if n == 1:
        return Interval(estimate=mean, low=-math.inf, high=math.inf, confidence=confidence)
    from scipy import special

    reach = special.stdtrit(n - 1, (1 + confidence) / 2) * math.sqrt(distribution.variance() / n)
    return Interval(
        estimate=mean, low=mean - float(reach), high=mean + float(reach), confidence=confidence
    )


def quantile(
    distribution: ErrorDistribution, fraction: float, confidence: float = CONFIDENCE
) -> Interval:
    """Return the quantile of ``|error|`` in ULP with an interval that no distribution evades.

    Of n independent draws, the number below the quantile of order p is at most Binomial(n, p), so
    that the order statistics of the ranks l = F⁻¹((1-c)/2) and u = F⁻¹((1+c)/2) + 1 enclose it with
    probability c or more (David and Nagaraja, Order Statistics, 3rd ed., 7.1); ties only widen it.
    Each limit is the outer edge of its bin, which widens it further, and the estimate is the upper
    edge: no underestimate. Results without a distance count as infinite errors.
    """
    if not 0.0 < fraction < 1.0:
        raise UsageError(f"quantile: got {fraction}, expected a number between 0 and 1.")
    n = distribution.results
    if n == 0:
        raise EmptySampleError("quantile: got no errors, expected at least one.")
    from scipy import stats

    low_rank, high_rank = (
        int(stats.binom.ppf((1 - confidence) / 2, n, fraction)),
        int(stats.binom.ppf((1 + confidence) / 2, n, fraction)) + 1,
    )
    return Interval(
        estimate=_size_of_rank(distribution, max(1, math.ceil(fraction * n)))[1],
        low=_size_of_rank(distribution, low_rank)[0],
        high=_size_of_rank(distribution, high_rank)[1],
        confidence=confidence,
    )


def _size_of_rank(distribution: ErrorDistribution, rank: int) -> tuple[float, float]:
    """Return the edges of the bin of the rank-th smallest ``|error|``; sizes are 0 or more."""
    if rank < 1:
        return 0.0, 0.0
    for index, count in distribution.sizes().items():
        rank -= count
        if rank <= 0:
            return (edges.edge(index) if index else 0.0), edges.upper(index)
    return math.inf, math.inf
