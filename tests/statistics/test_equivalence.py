import math

import numpy as np
import pytest
from scipy import stats

from gelu_verify.errors import EmptySampleError
from gelu_verify.statistics import equivalence


def test_p_values_are_those_of_scipys_one_sided_t_tests():
    values = [0.11, -0.05, 0.2, 0.02, 0.07]
    found = equivalence.compare(values, 0.3, 0.05)

    above = stats.ttest_1samp(values, -0.3, alternative="greater").pvalue
    below = stats.ttest_1samp(values, 0.3, alternative="less").pvalue
    assert found.p_equivalent == pytest.approx(max(above, below), rel=1e-12)
    interval = stats.ttest_1samp(values, 0.0).confidence_interval(0.9)
    assert (found.low, found.high) == pytest.approx((interval.low, interval.high), rel=1e-12)
    outside = equivalence.compare([v + 1 for v in values], 0.3, 0.05)
    beyond = stats.ttest_1samp([v + 1 for v in values], 0.3, alternative="greater").pvalue
    assert outside.p_different == pytest.approx(2 * beyond, rel=1e-12)


@pytest.mark.parametrize("shift", [0.5, -0.5])
def test_size_is_alpha_at_the_margin_and_the_interval_covers(shift):
    generator = np.random.default_rng(1)
    trials = 1000
    equivalent = different = covered = 0
    for _ in range(trials):
        found = equivalence.compare(generator.normal(shift, 0.3, 8), 0.5, 0.05)
        equivalent += found.p_equivalent < 0.05
        different += found.p_different < 0.05
        covered += found.low <= shift <= found.high
    # Both tests are exact at the margin: binomial intervals of 99.99 % for these trials.
    assert stats.binomtest(equivalent, trials, 0.05).pvalue > 1e-4
    assert stats.binomtest(different, trials, 0.025).pvalue > 1e-4
    assert stats.binomtest(covered, trials, 0.9).pvalue > 1e-4


@pytest.mark.parametrize(("shift", "pairs"), [(0.0, 6), (0.2, 12), (-0.3, 20)])
def test_power_is_what_simulation_gives(shift, pairs):
    generator = np.random.default_rng(2)
    trials = 1000
    held = sum(
        equivalence.compare(generator.normal(shift, 0.4, pairs), 0.5, 0.05).p_equivalent < 0.05
        for _ in range(trials)
    )
    expected = equivalence.power(pairs, shift, 0.4, 0.5, 0.05)
    assert stats.binomtest(held, trials, expected).pvalue > 1e-4


def test_power_to_differ_is_what_simulation_gives():
    generator = np.random.default_rng(3)
    found = sum(
        equivalence.compare(generator.normal(0.8, 0.4, 9), 0.5, 0.05).p_different < 0.05
        for _ in range(1000)
    )
    expected = equivalence.power_to_differ(9, 0.8, 0.4, 0.5, 0.05)
    assert stats.binomtest(found, 1000, expected).pvalue > 1e-4


def test_power_is_that_of_one_t_test_where_the_other_margin_is_far():
    # A shift beside one margin of a wide interval: the other test always rejects.
    expected = stats.nct.cdf(stats.t.ppf(0.05, 11), 11, (9.0 - 10.0) / (1 / math.sqrt(12)))
    assert equivalence.power(12, 9.0, 1.0, 10.0, 0.05) == pytest.approx(expected, abs=1e-7)


@pytest.mark.parametrize("shift", [0.0, 0.25, 1.0])
def test_pairs_needed_are_the_fewest_with_the_power_wanted(shift):
    needed = equivalence.pairs_needed(shift, 0.6, 0.5, 0.05, 0.9)
    decide = equivalence.power if shift < 0.5 else equivalence.power_to_differ
    assert decide(needed, shift, 0.6, 0.5, 0.05) >= 0.9
    assert decide(needed - 1, shift, 0.6, 0.5, 0.05) < 0.9


def test_pairs_needed_are_none_at_the_margin():
    assert equivalence.pairs_needed(0.5, 0.6, 0.5, 0.05, 0.9) is None


def test_smallest_seen_has_the_power_wanted():
    seen = equivalence.smallest_seen(10, 0.4, 0.5, 0.05, 0.9)
    assert equivalence.power_to_differ(10, seen, 0.4, 0.5, 0.05) == pytest.approx(0.9, abs=1e-6)


def test_identical_differences_decide_when_their_spread_is_zero():
    assert equivalence.compare([0.0] * 3, 0.1, 0.05).p_equivalent == 0.0
    assert equivalence.compare([0.25] * 3, 0.125, 0.05).p_different == 0.0
    at_margin = equivalence.compare([0.125] * 3, 0.125, 0.05)
    assert (at_margin.p_equivalent, at_margin.p_different) == (1.0, 1.0)


@pytest.mark.parametrize(
    ("values", "margin"), [([0.0, 0.0], 1.0), ([0.0, math.nan, 0.0], 1.0), ([0.0] * 5, 0.0)]
)
def test_no_verdict_when_there_is_nothing_to_judge(values, margin):
    with pytest.raises(EmptySampleError):
        equivalence.compare(values, margin, 0.05)
