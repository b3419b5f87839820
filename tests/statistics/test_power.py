"""Power: the search for the smallest fault, against laws whose power is known."""

import math

import numpy as np
import pytest
from scipy import stats

from gelu_verify.statistics import power as module
from gelu_verify.statistics.change import Setting
from gelu_verify.statistics.pool import Pool
from gelu_verify.statistics.power import Fault, RegionPower, power

UNIFORM = Pool({"centre": np.random.default_rng(0).random(100_000) - 0.5})


def found(pool: Pool, per_region: int, trials: int = 40) -> dict[Fault, RegionPower]:
    report = power(pool, per_region, trials=trials)
    return {region.fault: region for region in report.regions}


@pytest.mark.parametrize("threshold", [0.003, 0.1, 1.0, 7.3, 1e5])
def test_the_search_ends_just_above_the_smallest_size(threshold: float) -> None:
    size = module._smallest(lambda size: size >= threshold, 2.0**-7, 2.0**26)
    assert size is not None
    assert max(threshold, 2.0**-7) <= size <= max(threshold * 2 ** (1 / 16), 2.0**-7)


def test_a_fault_that_no_size_shows_has_none() -> None:
    assert module._smallest(lambda _: False, 2.0**-7, 1.0) is None


def test_wrong_results_are_seen_from_the_fraction_that_fisher_permits() -> None:
    """k of n lost, none before: the p-value is 2·C(n,k)/C(2n,k), k is binomial."""
    n, m = 400, module.RUN
    least = next(k for k in range(1, n) if 2 * stats.hypergeom.pmf(k, 2 * n, k, n) * m <= 0.001)
    smallest = found(UNIFORM, n)[Fault.WRONG].smallest
    assert smallest is not None
    # 99 % of trials, give or take what 40 of them cannot tell
    assert stats.binom.sf(least - 1, n, smallest / 2 ** (1 / 16)) < 0.9999
    assert stats.binom.sf(least - 1, n, smallest) > 0.9


def test_a_shift_is_seen_from_what_the_test_of_means_permits() -> None:
    """Uniform errors: the difference of means is normal, with standard deviation √(1/6n)."""
    n = 400
    sd = math.sqrt(1 / (6 * n))
    by_welch = sd * (stats.norm.isf(0.001 / module.RUN / 2) + stats.norm.isf(0.01))
    smallest = found(UNIFORM, n)[Fault.SHIFT].smallest
    assert smallest is not None
    assert by_welch * 0.8 <= smallest <= by_welch * 1.25


def test_no_smaller_shift_than_the_minimum_is_reported() -> None:
    report = power(UNIFORM, 300, Setting(minimum_shift_ulp=0.5), trials=30)
    smallest = report.regions[0].smallest
    assert smallest is not None
    assert smallest >= 0.5


def test_where_all_is_wrong_no_fraction_shows() -> None:
    pool = Pool({"tail": np.full(100, 1e5)})
    assert found(pool, 50, trials=5)[Fault.WRONG].smallest is None
