"""Three questions to two independent samples of errors, from their distributions alone.

Is the law the same (Kolmogorov–Smirnov), is the mean the same (Welch), is the fraction of wrong
results the same (Fisher)? Each gives the two-sided p-value; how large the difference is, in ULP, is
asked apart.
"""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass

import numpy as np
from scipy import special, stats

from gelu_verify.statistics import bins as edges
from gelu_verify.statistics import intervals
from gelu_verify.statistics.distribution import ErrorDistribution
from gelu_verify.statistics.intervals import Interval

#: scipy counts lattice paths exactly up to here for samples of unequal size (15 ms at 4096).
_EXACT_UP_TO = 10_000


@dataclass(frozen=True)
class Mean:
    """A mean of n independent errors: its value and variance of a single error, in ULP and ULP²."""

    value: float
    variance: float
    n: int


def same_law(before: ErrorDistribution, now: ErrorDistribution) -> float:
    """Return the p-value of Kolmogorov–Smirnov's test on the binned errors: never too small.

    Let the errors be e = q(U), q the quantile function and U uniform, and b the bin of an error.
    b∘q rises, so every event {b(e) <= k} is {U <= u_k} but for ties at its end, and the statistic
    of the bins, max_k |F(k) - G(k)|, is a maximum over some of the points over which that of the U
    runs: D_bins <= D_U for every outcome. The null law of D_U is the continuous one, hence
    P(D_bins >= d) <= P(D_U >= d), which is the p-value given here. Ties (atoms of the error, a
    short format) and bins cost power only.

    Exact for samples of one size, and for others up to 10,000 errors; beyond that asymptotic
    (``kstwo`` at nm/(n+m), within some per cent of the exact one).
    """
    sizes = before.count, now.count
    exact = sizes[0] == sizes[1] or max(sizes) <= _EXACT_UP_TO
    ranks = [
        np.repeat(np.array(list(d.bins), dtype=np.int64), list(d.bins.values()))
        for d in (before, now)
    ]
    with warnings.catch_warnings():
        # A count of paths that rounds to a probability above 1 fails scipy's own check: it warns,
        # and takes the asymptotic p-value, which is 1 too.
        warnings.simplefilter("ignore", RuntimeWarning)
        return float(stats.ks_2samp(*ranks, method="exact" if exact else "asymp").pvalue)


def distance(before: ErrorDistribution, now: ErrorDistribution) -> float:
    """Return Wasserstein's distance of the two laws in ULP: how far errors moved on average.

    Each error is taken at the middle of its bin, which moves it by at most half a bin: the distance
    is within one bin (1/128 ULP up to 4 ULP, 3.2 % beyond) of that of the errors.
    """
    values, weights = [], []
    for found in (before, now):
        values.append([edges.representative(index) for index in found.bins])
        weights.append(list(found.bins.values()))
    return float(stats.wasserstein_distance(*values, *weights))


def same_mean(before: Mean, now: Mean, confidence: float) -> tuple[float, Interval]:
    """Return Welch's p-value, and the difference now - before in ULP with its interval.

    The statistic is a self-normalised sum. For samples of one size it is symmetric under the null
    hypothesis, and its tails are at most those of a normal law however heavy those of the errors
    are (Efron 1969; de la Peña, Lai, Shao 2009, ch. 2), so that rare huge errors make the test
    cautious and not alarmed. It is an approximation all the same, for some dozen errors or more:
    what it gives is checked by the measured rate of false alarms.
    """
    difference = now.value - before.value
    parts = before.variance / before.n, now.variance / now.n
    spread = math.sqrt(sum(parts))
    if spread == 0.0:
        certain = Interval(
            estimate=difference, low=difference, high=difference, confidence=confidence
        )
        return (1.0 if difference == 0.0 else 0.0), certain
    squares = parts[0] ** 2 / (before.n - 1) + parts[1] ** 2 / (now.n - 1)
    freedom = sum(parts) ** 2 / squares
    reach = float(special.stdtrit(freedom, (1 + confidence) / 2)) * spread
    interval = Interval(
        estimate=difference,
        low=difference - reach,
        high=difference + reach,
        confidence=confidence,
    )
    return 2 * float(special.stdtr(freedom, -abs(difference) / spread)), interval


def same_fraction(
    before: tuple[int, int], now: tuple[int, int], confidence: float
) -> tuple[float, Interval]:
    """Return Fisher's exact p-value, and the difference of the fractions with its interval.

    before, now: wrong results, all results. The interval joins two Clopper–Pearson intervals of
    half the risk each, and so covers at least as often as it says.
    """
    table = [[wrong, results - wrong] for wrong, results in (before, now)]
    p_value = float(stats.fisher_exact(table).pvalue)
    each = (1 + confidence) / 2
    old, new = intervals.proportion(*before, each), intervals.proportion(*now, each)
    interval = Interval(
        estimate=new.estimate - old.estimate,
        low=new.low - old.high,
        high=new.high - old.low,
        confidence=confidence,
    )
    return p_value, interval
