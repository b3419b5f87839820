"""Signed errors by binade."""

import torch

from gelu_verify.measure import envelope
from gelu_verify.measure.envelope import Spread
from gelu_verify.measure.error import Errors


def errors(ulp, finite=None):
    ulp = torch.tensor(ulp, dtype=torch.float64)
    finite = torch.ones(len(ulp), dtype=torch.bool) if finite is None else torch.tensor(finite)
    blank = torch.zeros(len(ulp), dtype=torch.float64)
    return Errors(ulp, blank, blank, torch.zeros(len(ulp), dtype=torch.uint8), finite, 0.0)


def test_each_binade_has_its_lowest_highest_and_mean_error_ascending_in_x():
    x = torch.tensor([1.0, -4.0, 1.999, -2.0, -3.999, 2.0], dtype=torch.float64)
    found = envelope.reaches(x, errors([0.5, 9.0, -1.5, -3.0, 1.0, 0.25]))
    assert [(r.negative, r.exponent, r.count) for r in found] == [
        (True, 2, 1), (True, 1, 2), (False, 0, 2), (False, 1, 1)
    ]  # fmt: skip
    assert (found[1].lowest_ulp, found[1].highest_ulp, found[1].mean_ulp) == (-3.0, 1.0, -1.0)
    assert (found[2].lowest_ulp, found[2].highest_ulp, found[2].mean_ulp) == (-1.5, 0.5, -0.5)


def test_what_lies_beyond_is_in_the_outermost_binade_and_nothing_is_lost():
    x = torch.tensor([0.0, -0.0, 5e-324, -1e-30, 1e300, -65536.0], dtype=torch.float64)
    found = envelope.reaches(x, errors([0.0, 0.0, 1.0, 2.0, 3.0, 4.0]))
    assert [(r.negative, r.exponent, r.count) for r in found] == [
        (True, 16, 1), (True, -24, 2), (False, -24, 2), (False, 16, 1)
    ]  # fmt: skip


def test_elements_without_a_distance_are_left_out():
    x = torch.tensor([1.0, float("inf"), float("nan"), -float("inf")], dtype=torch.float64)
    nan = float("nan")
    found = envelope.reaches(x, errors([0.5, nan, nan, 0.0], [True, False, False, True]))
    assert [(r.exponent, r.count, r.highest_ulp) for r in found] == [(0, 1, 0.5)]


def test_spreads_of_fp32_are_joined_where_they_share_a_binade_of_the_envelope():
    one, other = Spread.of(2, 3 << 20, 1.0, 2.0), Spread.of(1, -(1 << 20), -1.0, -1.0)
    found = envelope.of_binades({0x100 + 127: one, 0: one, 1: other, 3: Spread(), 254: Spread(5)})
    assert [(r.negative, r.exponent, r.count) for r in found] == [
        (True, 0, 2), (False, -24, 3), (False, 16, 5)
    ]  # fmt: skip
    assert (found[0].lowest_ulp, found[0].highest_ulp, found[0].mean_ulp) == (1.0, 2.0, 1.5)
    assert (found[1].lowest_ulp, found[1].highest_ulp, found[1].mean_ulp) == (-1.0, 2.0, 2 / 3)
    assert (found[2].lowest_ulp, found[2].mean_ulp) == (0.0, 0.0)
