"""Axes of a whole range."""

import math

import pytest

from gelu_verify.measure.envelope import HIGHEST, LOWEST
from gelu_verify.report.site import axes


def test_x_keeps_its_order_and_sign_over_the_whole_range():
    xs = [-math.inf, -1e30, -2.0, -1.0, -1e-3, -1e-30, 0.0, 1e-30, 1e-3, 1.0, 2.0, 1e30, math.inf]
    places = [axes.place(x) for x in xs]
    assert places == sorted(places)
    assert places == [-p for p in reversed(places)]
    assert axes.place(2.0) - axes.place(1.0) == 1.0
    assert places[-1] == axes.EDGE


def test_a_binade_lies_between_its_ends_and_far_ones_share_a_column():
    assert axes.column("+", 0) == (axes.place(1.0) + axes.place(2.0)) / 2
    assert axes.column("-", 127) == axes.column("-", HIGHEST) == -axes.EDGE + 0.5
    assert axes.column("+", -127) == axes.column("+", LOWEST)


@pytest.mark.parametrize("largest", [0.0, 0.5, 3.0, 900.0, 1.7e7, 7e16])
def test_ticks_of_errors_lie_in_range_and_name_their_place(largest):
    axis = axes.error_axis(largest)
    assert axis["tickvals"] == sorted(axis["tickvals"])
    assert len(axis["tickvals"]) == len(axis["ticktext"]) <= 17
    assert axis["range"][1] >= axes.height(largest)
    assert all(abs(v) <= axis["range"][1] * 1.35 for v in axis["tickvals"])
    assert axes.height(-3.0) == -2.0
