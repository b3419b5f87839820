"""Edges of the bins, and which error is in which."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gelu_verify.statistics import bins


def index_of(error: float) -> int:
    return int(bins.indices(np.array([error]))[0])


def test_edges_are_those_of_the_docstring() -> None:
    assert bins.edge(1) == 0.0
    assert bins.edge(65) == 0.5
    assert bins.edge(513) == 4.0
    assert bins.edge(514) == 4.125
    assert bins.edge(545) == 8.0
    assert bins.edge(bins.LAST) == 2.0**24
    assert bins.upper(0) == 0.0
    assert bins.upper(bins.LAST) == math.inf


def test_every_edge_opens_its_bin() -> None:
    for index in range(2, bins.LAST + 1):
        edge = bins.edge(index)
        assert index_of(edge) == index
        assert index_of(math.nextafter(edge, 0.0)) == index - 1


def test_no_bin_is_wider_than_promised() -> None:
    for index in range(1, bins.LAST):
        width = bins.upper(index) - bins.edge(index)
        assert 0 < width <= max(1 / 128, bins.edge(index) / 31)


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_an_error_is_within_its_bin(error: float) -> None:
    index = index_of(error)
    assert index_of(-error) == -index
    if error == 0.0:
        assert index == 0
    else:
        assert bins.edge(abs(index)) <= abs(error) < bins.upper(abs(index))
        assert math.copysign(1, index) == math.copysign(1, error)


@given(st.lists(st.floats(-1e9, 1e9), min_size=2))
def test_the_index_rises_with_the_error(errors: list[float]) -> None:
    found = bins.indices(np.sort(np.array(errors)))
    assert (np.diff(found) >= 0).all()


@pytest.mark.parametrize(
    ("limit", "edge"), [(4.0, 4.0), (4.01, 4.125), (0.5, 0.5), (3.999, 4.0), (1e30, 2.0**24)]
)
def test_a_limit_is_the_next_edge_above_it(limit: float, edge: float) -> None:
    assert bins.edge(bins.first_at(limit)) == edge


def test_the_middle_of_a_bin_has_the_sign_of_its_errors() -> None:
    assert bins.representative(65) == -bins.representative(-65) == 0.5 + 1 / 256
    assert bins.representative(0) == 0.0
