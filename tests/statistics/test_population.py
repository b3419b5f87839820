"""Facts of two exhaustive passes, against the results themselves."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from gelu_verify.errors import UsageError
from gelu_verify.measure import histogram
from gelu_verify.measure.summary import RegionSummary
from gelu_verify.statistics import population
from gelu_verify.statistics.population import RegionFacts, differences


def facts(*errors: float) -> RegionFacts:
    summary = RegionSummary()
    if errors:
        summary.add_errors(torch.tensor(errors, dtype=torch.float64))
    return RegionFacts.of(summary)


def test_the_number_of_bins_is_that_of_the_histogram() -> None:
    assert population._BINS == histogram.BIN_COUNT


def test_equal_facts_are_no_difference() -> None:
    assert differences({"tail": facts(0.1, 0.3)}, {"tail": facts(0.3, 0.1)}) == []


def test_a_difference_says_how_many_crossed_which_edge() -> None:
    before = {"tail": facts(*[0.3] * 10), "centre": facts(0.25)}
    now = {"tail": facts(*[0.3] * 6, *[0.6] * 3, 0.01), "centre": facts(0.25)}
    (found,) = differences(before, now)
    assert (found.region, found.changed_at_least) == ("tail", 4)
    assert found.worsened is not None
    assert found.worsened.count == 3
    assert 0.3 < histogram.upper_edge(found.worsened.bin - 1) <= 0.6
    assert found.improved is not None
    assert found.improved.count == 1
    assert found.mean_now_ulp == pytest.approx(3.61 / 10, abs=1e-6)


def test_results_that_lost_their_distance_are_counted() -> None:
    (found,) = differences({"tail": facts(0.3, 0.3)}, {"tail": facts(0.3)})
    assert (found.count_before, found.count, found.changed_at_least) == (2, 1, 1)


@given(st.lists(st.tuples(st.floats(0, 100), st.floats(0, 100)), min_size=1, max_size=30))
def test_bounds_are_never_above_what_changed(pairs: list[tuple[float, float]]) -> None:
    before, now = (facts(*part) for part in zip(*pairs, strict=True))
    for found in differences({"tail": before}, {"tail": now}):
        assert found.changed_at_least <= sum(one != other for one, other in pairs)
        worsened = found.worsened.count if found.worsened else 0
        improved = found.improved.count if found.improved else 0
        assert worsened <= sum(other > one for one, other in pairs)
        assert improved <= sum(other < one for one, other in pairs)


def test_a_region_without_results_has_no_mean() -> None:
    assert math.isnan(facts().mean_error_ulp)


def test_other_regions_are_refused() -> None:
    with pytest.raises(UsageError, match="got regions centre, expected tail"):
        differences({"tail": facts(0.3)}, {"centre": facts(0.3)})


@pytest.mark.parametrize(
    "change",
    [{"count": 3}, {"histogram": {999: 2}}, {"signed_sum": 10**300}, {"max_error_ulp": -1.0}],
)
def test_facts_that_cannot_be_are_refused(change: dict[str, object]) -> None:
    content = facts(0.3, 0.3).model_dump() | change
    with pytest.raises(ValidationError):
        RegionFacts.model_validate(content)
