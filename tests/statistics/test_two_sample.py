"""Tests of two samples against scipy on the raw errors, and their validity under ties."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from gelu_verify.statistics import two_sample
from gelu_verify.statistics.distribution import ErrorDistribution
from gelu_verify.statistics.two_sample import Mean

of = ErrorDistribution.from_errors
RANDOM = np.random.default_rng(3)


def test_the_law_is_tested_as_scipy_does_when_every_error_has_a_bin() -> None:
    one, other = (RANDOM.integers(-60, 60, 200) / 128 + 1 / 256 for _ in range(2))
    expected = stats.ks_2samp(one, other + 0.125, method="exact").pvalue
    assert two_sample.same_law(of(one), of(other + 0.125)) == pytest.approx(expected, rel=1e-9)


@given(st.integers(0, 2**32), st.sampled_from([(50, 50), (64, 48)]), st.floats(0, 0.3))
def test_bins_never_make_a_p_value_smaller(seed: int, sizes: tuple[int, int], shift: float) -> None:
    random = np.random.default_rng(seed)
    one, other = (random.standard_normal(n) / 16 for n in sizes)
    raw = stats.ks_2samp(one, other + shift, method="exact").pvalue
    assert two_sample.same_law(of(one), of(other + shift)) >= raw * (1 - 1e-9)


@pytest.mark.parametrize("values", [[0.0], [0.0, 0.25], [-0.5, -0.25, 0.0, 0.25, 0.5]])
def test_ties_cost_power_and_not_validity(values: list[float]) -> None:
    random = np.random.default_rng(7)
    p_values = np.array(
        [
            two_sample.same_law(of(random.choice(values, 100)), of(random.choice(values, 100)))
            for _ in range(300)
        ]
    )
    for level in (0.05, 0.2):
        assert (p_values <= level).sum() <= stats.binom.ppf(1 - 1e-4, 300, level)


def test_means_are_compared_as_scipy_does() -> None:
    one, other = RANDOM.standard_normal(40), 0.3 + 2 * RANDOM.standard_normal(70)
    expected = stats.ttest_ind(other, one, equal_var=False)
    reach = expected.confidence_interval(0.95)
    means = (Mean(part.mean(), part.var(ddof=1), part.size) for part in (one, other))
    p_value, interval = two_sample.same_mean(*means, confidence=0.95)
    assert p_value == pytest.approx(expected.pvalue)
    assert (interval.low, interval.high) == pytest.approx((reach.low, reach.high))


@pytest.mark.parametrize(("difference", "p_value"), [(0.0, 1.0), (0.5, 0.0)])
def test_constants_are_the_same_or_not(difference: float, p_value: float) -> None:
    found = two_sample.same_mean(Mean(1.0, 0.0, 50), Mean(1.0 + difference, 0.0, 50), 0.95)
    assert found[0] == p_value
    assert found[1].low == found[1].high == difference


def test_rare_huge_errors_do_not_alarm_the_test_of_means() -> None:
    random = np.random.default_rng(9)
    p_values = []
    for _ in range(400):
        parts = (np.where(random.random(500) < 0.004, 1e6, random.random(500)) for _ in range(2))
        means = (Mean(part.mean(), part.var(ddof=1), part.size) for part in parts)
        p_values.append(two_sample.same_mean(*means, confidence=0.95)[0])
    assert (np.array(p_values) <= 0.01).sum() <= stats.binom.ppf(1 - 1e-4, 400, 0.01)


def test_fractions_have_the_p_value_of_the_hypergeometric_law() -> None:
    # 17 wrong among 4,096 + 4,096 results, all of them now: probability 2·C(4096,17)/C(8192,17)
    p_value, interval = two_sample.same_fraction((0, 4096), (17, 4096), 0.95)
    assert p_value == pytest.approx(2 * stats.hypergeom.pmf(17, 8192, 17, 4096))
    assert interval.low < 17 / 4096 < interval.high


def test_the_interval_of_fractions_covers_as_often_as_it_says() -> None:
    random = np.random.default_rng(13)
    hits = 0
    for _ in range(300):
        before, now = int(random.binomial(200, 0.02)), int(random.binomial(200, 0.05))
        interval = two_sample.same_fraction((before, 200), (now, 200), 0.9)[1]
        hits += interval.low <= 0.03 <= interval.high
    assert stats.binom.ppf(1e-4, 300, 0.9) <= hits


@given(st.integers(0, 2**32), st.floats(0, 3))
def test_the_distance_is_that_of_the_errors_within_a_bin(seed: int, shift: float) -> None:
    random = np.random.default_rng(seed)
    one, other = random.random(80) - 0.5, random.random(60) - 0.5 + shift
    expected = stats.wasserstein_distance(one, other)
    assert two_sample.distance(of(one), of(other)) == pytest.approx(expected, abs=1 / 128)
