"""The histogram's bins, counts and quantiles against plain numpy."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from gelu_verify.errors import EmptySampleError
from gelu_verify.measure import histogram

errors = st.floats(0, 1e300, allow_nan=False) | st.floats(2.0**-18, 64)


def bin_of(error: float) -> int:
    return int(histogram.bins(torch.tensor([error], dtype=torch.float64))[0])


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (0.0, 0),
        (5e-324, 0),
        (math.nextafter(2.0**-16, 0.0), 0),
        (2.0**-16, 1),
        (1.25 * 2.0**-16, 2),
        (math.nextafter(2.0**-15, 0.0), 4),
        (2.0**-15, 5),
        (0.5, 61),
        (1.0, 65),
        (1.5, 67),
        (2.0, 69),
        (math.nextafter(2.0**40, 0.0), 224),
        (2.0**40, 225),
        (1e300, 225),
        (math.inf, 225),
    ],
)
def test_bin_of_an_error(error: float, expected: int) -> None:
    assert bin_of(error) == expected


@given(error=errors)
def test_error_lies_between_the_edges_of_its_bin(error: float) -> None:
    index = bin_of(error)
    assert error < histogram.upper_edge(index)
    assert index == 0 or error >= histogram.upper_edge(index - 1)


def test_edges_are_quarters_of_octaves_and_end_in_infinity() -> None:
    edges = [histogram.upper_edge(index) for index in range(histogram.BIN_COUNT)]
    assert edges[:5] == [2.0**-16 * quarter for quarter in (1.0, 1.25, 1.5, 1.75, 2.0)]
    assert edges[-2:] == [2.0**40, math.inf]
    assert edges == sorted(edges)


@given(sample=st.lists(errors, min_size=1, max_size=60), fraction=st.sampled_from([0.5, 0.9, 0.99]))
def test_quantile_is_an_upper_bound_within_a_quarter(sample: list[float], fraction: float) -> None:
    counts = histogram.count(torch.tensor(sample, dtype=torch.float64))
    assert counts.sum() == len(sample)
    true = sorted(sample)[max(0, math.ceil(fraction * len(sample)) - 1)]
    actual = histogram.quantile(counts, fraction)
    assert true < actual
    if 2.0**-16 <= true < 2.0**40:
        assert actual <= 1.25 * true


@pytest.mark.parametrize(
    ("fraction", "expected"), [(0.0, 1.25), (0.5, 1.25), (0.75, 2.5), (0.9, 5.0), (1.0, 5.0)]
)
def test_quantile_takes_the_element_of_its_rank(fraction: float, expected: float) -> None:
    counts = histogram.count(torch.tensor([1.0, 1.0, 2.0, 4.0], dtype=torch.float64))
    assert histogram.quantile(counts, fraction) == expected


def test_quantile_of_nothing_is_an_error() -> None:
    with pytest.raises(EmptySampleError):
        histogram.quantile(np.zeros(histogram.BIN_COUNT, dtype=np.int64), 0.5)
