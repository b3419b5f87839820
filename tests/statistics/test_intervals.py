"""Intervals against scipy's, and against the truth as often as they say."""

import math
from collections.abc import Callable

import numpy as np
import pytest
from scipy import stats

from gelu_verify.errors import EmptySampleError, UsageError
from gelu_verify.statistics import intervals
from gelu_verify.statistics.distribution import ErrorDistribution

of = ErrorDistribution.from_errors


@pytest.mark.parametrize(("k", "n"), [(0, 1), (1, 1), (0, 1000), (3, 1000), (997, 1000), (50, 100)])
def test_a_proportion_has_the_interval_of_clopper_and_pearson(k: int, n: int) -> None:
    found = intervals.proportion(k, n, 0.99)
    expected = stats.binomtest(k, n).proportion_ci(0.99, method="exact")
    assert found.low == pytest.approx(expected.low, abs=1e-12)
    assert found.high == pytest.approx(expected.high, abs=1e-12)


def test_no_alarm_in_a_thousand_leaves_four_in_a_thousand_open() -> None:
    # 1 - 0.025^(1/1000)
    assert intervals.proportion(0, 1000).high == pytest.approx(0.00368208, abs=1e-8)


def test_no_trial_has_no_rate() -> None:
    with pytest.raises(EmptySampleError):
        intervals.proportion(0, 0)


def least_hits(trials: int, confidence: float) -> int:
    """Fewer hits than this have a probability below 1e-4 if the interval covers as it says."""
    return int(stats.binom.ppf(1e-4, trials, confidence))


LAWS: dict[str, tuple[Callable[[np.random.Generator, int], np.ndarray], float, float]] = {
    # law: draws, its mean, the quantile of order 0.9 of |error|
    "uniform": (lambda g, n: g.random(n) - 0.5, 0.0, 0.45),
    "normal": (lambda g, n: g.standard_normal(n) + 1.0, 1.0, float(stats.foldnorm(1.0).ppf(0.9))),
    "heavy": (lambda g, n: g.standard_t(3, n), 0.0, float(stats.t(3).ppf(0.95))),
    "atoms": (lambda g, n: g.choice([-0.25, 0.0, 2.0], n, p=[0.45, 0.5, 0.05]), -0.0125, 0.25),
}


@pytest.mark.parametrize("law", LAWS)
def test_intervals_cover_the_truth_as_often_as_they_say(law: str) -> None:
    draw, mean, quantile = LAWS[law]
    random = np.random.default_rng(11)
    hits_mean = hits_quantile = 0
    trials = 300
    for _ in range(trials):
        found = of(draw(random, 300))
        bias = intervals.bias(found, 0.9)
        hits_mean += bias.low <= mean <= bias.high
        of_size = intervals.quantile(found, 0.9, 0.9)
        hits_quantile += of_size.low <= quantile <= of_size.high
    assert hits_quantile >= least_hits(trials, 0.9)
    assert hits_mean >= least_hits(trials, 0.9)
    # and no wider than they need be: an interval of everything covers always
    assert hits_mean < trials


def test_a_quantile_is_at_the_edges_of_the_bins_of_its_ranks() -> None:
    # ranks for n = 100, p = 1/2, 95 %: 40 and 61 (David and Nagaraja, table of 7.1)
    found = intervals.quantile(of(np.arange(1, 101) / 128), 0.5)
    assert (found.low, found.estimate, found.high) == (40 / 128, 51 / 128, 62 / 128)


def test_a_quantile_among_lost_results_is_infinite() -> None:
    found = intervals.quantile(of(np.array([0.1, math.nan, math.nan])), 0.5)
    assert found.estimate == found.high == math.inf


def test_a_single_error_leaves_everything_open() -> None:
    assert intervals.bias(of(np.array([0.25]))).high == math.inf
    assert intervals.quantile(of(np.array([0.25])), 0.5).low == 0.0


@pytest.mark.parametrize("fraction", [0.0, 1.0, math.nan])
def test_a_quantile_of_no_order_is_refused(fraction: float) -> None:
    with pytest.raises(UsageError, match="between 0 and 1"):
        intervals.quantile(of(np.array([0.25])), fraction)
