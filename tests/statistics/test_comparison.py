"""Comparisons of regions: what counts, what is corrected, what is a fact."""

import math
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from gelu_verify.errors import EmptySampleError, UsageError
from gelu_verify.statistics import comparison
from gelu_verify.statistics.change import Change, Comparison, Quantity, Setting
from gelu_verify.statistics.comparison import compare, compare_identical, compare_samples, holm
from gelu_verify.statistics.distribution import ErrorDistribution
from gelu_verify.statistics.sample import Sample

of = ErrorDistribution.from_errors


def rounding_errors(seed: int, count: int = 4096) -> np.ndarray:
    """Those of correct rounding: uniform in ±1/2 ULP."""
    return np.random.default_rng(seed).random(count) - 0.5


def with_p(*p_values: float | None) -> list[Comparison]:
    return [
        Comparison(
            region="centre",
            quantity=Quantity.BIAS,
            before=0.0,
            now=1.0,
            effect=1.0,
            minimum_effect=0.1,
            improved=False,
            p_value=p,
        )
        for p in p_values
    ]


def by_quantity(found: Sequence[Comparison]) -> dict[Quantity, Comparison]:
    return {c.quantity: c for c in found}


def changes(before: np.ndarray, now: np.ndarray) -> dict[Quantity, Change]:
    decided = holm(compare_samples({"centre": of(before)}, {"centre": of(now)}))
    return {quantity: c.change for quantity, c in by_quantity(decided).items()}


def test_holm_gives_the_values_of_a_worked_example() -> None:
    # p.adjust(c(0.01, 0.04, 0.03, 0.005), "holm") in R: 0.03 0.06 0.06 0.02
    found = holm(with_p(0.01, 0.04, None, 0.03, 0.005), Setting(alpha=0.05))
    assert [c.adjusted_p for c in found] == pytest.approx([0.03, 0.06, None, 0.06, 0.02])
    worse, none = Change.WORSE, Change.NONE
    assert [c.change for c in found] == [worse, none, none, none, worse]


@given(st.lists(st.floats(0, 1), min_size=1, max_size=12))
def test_holm_is_between_no_correction_and_bonferroni(p_values: list[float]) -> None:
    found = holm(with_p(*p_values))
    pairs = [(p, c.adjusted_p or 0.0) for p, c in zip(p_values, found, strict=True)]
    assert all(p <= adjusted <= min(1.0, p * len(p_values)) for p, adjusted in pairs)
    assert [a for _, a in sorted(pairs)] == sorted(a for _, a in pairs)


@pytest.mark.parametrize("p_value", [math.nan, -0.1, 1.5])
def test_a_p_value_that_is_no_probability_is_refused(p_value: float) -> None:
    with pytest.raises(ValidationError):
        with_p(p_value)


def test_an_effect_that_is_no_number_is_worse() -> None:
    (one,) = with_p(1e-9)
    assert holm([one.model_copy(update={"effect": math.nan})])[0].change is Change.WORSE


def test_nothing_changed_says_nothing() -> None:
    found = changes(rounding_errors(1), rounding_errors(2))
    assert set(found.values()) == {Change.NONE}


def test_a_shift_is_worse_in_mean_and_law() -> None:
    found = changes(rounding_errors(1), rounding_errors(2) + 0.1)
    assert found[Quantity.BIAS] is found[Quantity.DISTRIBUTION] is Change.WORSE
    assert found[Quantity.WRONG] is Change.NONE


def test_smaller_errors_are_better() -> None:
    found = changes(2 * rounding_errors(1), rounding_errors(2))
    assert found[Quantity.DISTRIBUTION] is Change.BETTER


def test_another_law_that_is_not_surely_better_is_worse() -> None:
    two_sided = np.random.default_rng(2).choice([-0.25, 0.25], 4096)  # mean |error| 1/4, as before
    found = changes(rounding_errors(1), two_sided)
    assert found[Quantity.DISTRIBUTION] is Change.WORSE


def test_a_significant_change_below_the_minimum_is_small() -> None:
    found = changes(rounding_errors(1, 300_000), rounding_errors(2, 300_000) + 0.02)
    assert found[Quantity.BIAS] is found[Quantity.DISTRIBUTION] is Change.SMALL


def test_the_minimum_grows_with_the_errors() -> None:
    # 0.1 ULP is surely there, and 2 % of the mean |error| of 5 ULP
    before, now = (20 * rounding_errors(seed, 2**18) for seed in (1, 2))
    found = changes(before, now + 0.1)
    assert found[Quantity.BIAS] is Change.SMALL


def test_lost_results_are_wrong_ones() -> None:
    now = rounding_errors(2)
    now[:50] = math.nan
    assert changes(rounding_errors(1), now)[Quantity.WRONG] is Change.WORSE
    assert changes(now, rounding_errors(1))[Quantity.WRONG] is Change.BETTER


def test_only_lost_results_leave_no_other_quantity() -> None:
    found = changes(rounding_errors(1), np.full(4096, math.nan))
    assert found == {Quantity.WRONG: Change.WORSE}


def test_regions_are_compared_each_by_itself() -> None:
    """Pooled, the drift of the small region would drown in the other."""
    before = {"tail": of(rounding_errors(1)), "centre": of(rounding_errors(2, 100_000))}
    now = {"tail": of(rounding_errors(3) + 0.2), "centre": of(rounding_errors(4, 100_000))}
    found = holm(compare_samples(before, now))
    assert {c.region for c in found if c.change is Change.WORSE} == {"tail"}


def test_errors_at_the_same_inputs_are_facts() -> None:
    errors = rounding_errors(1, 100)
    now = errors.copy()
    now[0] = 8.0
    before = {"centre": of(errors)}
    assert {c.change for c in compare_identical(before, before)} == {Change.NONE}
    found = by_quantity(compare_identical(before, {"centre": of(now)}))
    assert all(c.p_value is None for c in found.values())
    assert found[Quantity.WRONG].change is Change.WORSE  # 1 % of the inputs
    assert found[Quantity.BIAS].effect == pytest.approx((8.0 - errors[0]) / 100, abs=1e-6)
    assert found == by_quantity(holm(list(found.values())))


def sample(digest: str, errors: np.ndarray) -> Sample:
    return Sample(
        seed=0,
        per_region=errors.size,
        inputs_digest=digest,
        regions={"centre": of(errors)},
        outputs_digest="0" * 16,
    )


def test_only_samples_of_other_inputs_are_tested() -> None:
    one = sample("1" * 16, rounding_errors(1))
    same, other = sample("1" * 16, rounding_errors(2)), sample("2" * 16, rounding_errors(2))
    assert all(c.p_value is None for c in compare(one, same))
    assert all(c.p_value is not None for c in compare(one, other))


def test_what_cannot_be_compared_is_refused() -> None:
    some, none = {"centre": of(rounding_errors(1))}, {"centre": of(np.empty(0))}
    with pytest.raises(UsageError, match="got regions tail, expected centre"):
        compare_samples(some, {"tail": some["centre"]})
    with pytest.raises(EmptySampleError, match="0 results now and 4096 before"):
        compare_samples(some, none)
    with pytest.raises(UsageError, match="got 10 results, expected the 4096"):
        compare_identical(some, {"centre": of(rounding_errors(1, 10))})
    assert compare_samples(none, none) == []


def test_few_errors_have_no_test_of_their_mean() -> None:
    few = {"centre": of(rounding_errors(1, comparison.LEAST_FOR_MEAN - 1))}
    assert Quantity.BIAS not in by_quantity(compare_samples(few, few))


def test_a_sentence_says_what_where_and_how_surely() -> None:
    found = holm(with_p(0.0001))[0]
    assert found.sentence() == "centre: mean error 0 → 1 ULP; adjusted p = 0.0001: worse"
