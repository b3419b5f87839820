"""False alarms: counted where there are some, none where the tests are valid."""

import numpy as np
import pytest

from gelu_verify.errors import EmptySampleError
from gelu_verify.statistics.change import Setting
from gelu_verify.statistics.distribution import ErrorDistribution
from gelu_verify.statistics.false_alarms import false_alarms


def source(seed: int) -> dict[str, ErrorDistribution]:
    """A kernel that does not change, in two regions."""
    random = np.random.default_rng(seed)
    return {
        "tail": ErrorDistribution.from_errors(random.standard_normal(200)),
        "centre": ErrorDistribution.from_errors(random.choice([-0.5, 0.0, 0.5], 200)),
    }


def drifting(seed: int) -> dict[str, ErrorDistribution]:
    """Samples of seeds 6, 7, 14, 15, ... disagree: an alarm in every fourth decision."""
    drift = 1.0 if seed % 8 == 7 else 0.0
    errors = np.random.default_rng(seed).standard_normal(500) + drift
    return {"tail": ErrorDistribution.from_errors(errors)}


def test_every_alarm_is_counted_with_its_seed() -> None:
    found = false_alarms(drifting, decisions=20)
    assert (found.alarms, found.significant, found.comparisons) == (5, 5, 60)
    assert found.alarm_seeds == (6, 14, 22, 30, 38)
    assert found.rate.estimate == 0.25
    assert found.rate.low < 0.25 < found.rate.high


def test_alarms_of_valid_tests_are_as_rare_as_they_must_be() -> None:
    found = false_alarms(source, 200, Setting(alpha=0.1, minimum_shift_ulp=0, minimum_relative=0))
    # 200 decisions with risk 1/10 have more in one case of 10,000.
    assert found.significant <= 37
    assert found.alarms <= found.significant
    for level, fraction in found.p_values_up_to.items():
        assert fraction <= float(level) + 5 * (float(level) / found.comparisons) ** 0.5


def test_no_seed_serves_two_decisions() -> None:
    seen: list[int] = []

    def watched(seed: int) -> dict[str, ErrorDistribution]:
        seen.append(seed)
        return source(seed)

    false_alarms(watched, decisions=5, first_seed=100)
    assert seen == list(range(100, 110))


def test_no_decision_is_no_report() -> None:
    with pytest.raises(EmptySampleError, match="got 0"):
        false_alarms(source, decisions=0)
