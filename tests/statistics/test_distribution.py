"""Distributions of errors: exact sums, merging in any order, files that cannot be."""

import json
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from gelu_verify.errors import EmptySampleError
from gelu_verify.statistics import distribution as module
from gelu_verify.statistics.distribution import ErrorDistribution
from tests.strategies import chunkings

ERRORS = [0.0, -0.0, 0.5, -0.5, 1e-9, 3.9999, 4.0, -7.1e6, 2.0**24, 2.0**25, -1e300, math.nan]


def of(*errors: float) -> ErrorDistribution:
    return ErrorDistribution.from_errors(np.array(errors, dtype=np.float64))


def rounded(error: float) -> Fraction:
    """The error as sums hold it: clipped, then to a multiple of 2^-20, ties to even."""
    clipped = Fraction(max(-(2.0**24), min(2.0**24, error)))
    return Fraction(round(clipped * 2**20), 2**20)


@given(chunkings(len(ERRORS)))
def test_any_split_in_any_order_gives_the_same_record(parts: list[list[int]]) -> None:
    whole = of(*ERRORS)
    merged = of()
    for part in parts:
        merged = merged.merge(of(*(ERRORS[i] for i in part)))
    assert merged == whole
    assert merged.model_dump_json() == whole.model_dump_json()


@given(st.lists(st.floats(-1e8, 1e8), min_size=2, max_size=40))
def test_figures_are_those_of_exact_arithmetic(errors: list[float]) -> None:
    found = of(*errors)
    exact = [rounded(error) for error in errors]
    mean = sum(exact) / len(exact)
    assert found.mean() == float(mean)
    assert found.mean_absolute() == float(sum(map(abs, exact)) / len(exact))
    variance = sum((e - mean) ** 2 for e in exact) / (len(exact) - 1)
    assert found.variance() == pytest.approx(float(variance), rel=1e-12, abs=0)
    assert found.clipped == sum(abs(e) > 2.0**24 for e in errors)


def test_chunks_do_not_show(monkeypatch: pytest.MonkeyPatch) -> None:
    errors = np.random.default_rng(5).standard_cauchy(1000) * 100
    whole = ErrorDistribution.from_errors(errors)
    monkeypatch.setattr(module, "_CHUNK", 7)
    assert ErrorDistribution.from_errors(errors) == whole


def test_results_without_a_distance_are_wrong_by_any_limit() -> None:
    found = of(math.nan, math.inf, -math.inf, 0.25, -4.0, 4.0, 3.9)
    assert (found.count, found.undefined, found.results) == (4, 3, 7)
    assert found.beyond(4.0) == 3 + 2
    assert found.beyond(1e30) == 3


def test_nothing_has_no_mean() -> None:
    with pytest.raises(EmptySampleError, match="got no errors"):
        of(math.nan).mean()


def test_a_record_survives_its_file() -> None:
    found = of(*ERRORS)
    assert ErrorDistribution.model_validate_json(found.model_dump_json()) == found


@pytest.mark.parametrize(
    ("field", "value", "complaint"),
    [
        ("count", 11, "add up"),
        ("count", 1 << 50, "less than or equal"),
        ("count", -1, "greater than or equal"),
        ("signed_sum", 10**400, "less than or equal"),
        ("signed_sum", 2**44, "signed_sum must be one of errors"),
        ("absolute_sum", 0, "absolute_sum must be one of errors"),
        ("square_sum", 0, "square_sum must be at least"),
        ("clipped", 5, "outermost"),
        ("bins", {"0": 12}, "add up"),
        ("bins", {"99999": 11}, "less than or equal"),
        ("bins", {str(i): 1 for i in range(5000)}, "less than or equal"),
        ("bins", {"0": -3}, "greater than or equal"),
        ("more", 1, "Extra inputs"),
    ],
)
def test_figures_that_no_errors_have_are_refused(field: str, value: object, complaint: str) -> None:
    content = json.loads(of(*ERRORS[:10]).model_dump_json())
    content[field] = value
    with pytest.raises(ValidationError, match=complaint):
        ErrorDistribution.model_validate_json(json.dumps(content))
