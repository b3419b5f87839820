"""The measuring pass says what a sweep in memory, every element judged, says."""

import math
from dataclasses import astuple

import pytest
import torch

from gelu_verify.exhaustive import transport
from gelu_verify.exhaustive.spans import EPSILON
from gelu_verify.measure import envelope
from gelu_verify.measure.error import Class
from gelu_verify.measure.regions import Region
from tests import faulty_kernels
from tests.exhaustive import passes
from tests.exhaustive.passes import FAULTY, FUNCTIONS, SIGN, SOUND, borders, census, general

WIDTH = 200
KERNELS = [
    *((SOUND[formula], formula, derivative) for formula, derivative in FUNCTIONS),
    *((kernel, "erf", derivative) for kernel in FAULTY for derivative in (0, 1)),
]


def ranges(formula, derivative):
    """Patterns around every border, and some from within the large binades."""
    around = [
        (border if border == SIGN else border - WIDTH, border + WIDTH)
        for border in borders(formula, derivative)
    ]
    inside = [0x3EA00000, 0x3FC00000, 0xBEA00000, 0xBF800000 - WIDTH, 0xC0600000, 0xC1400000]
    return [*around, *((start, start + 2 * WIDTH) for start in inside)]


def same(one, other):
    """Samples alike but for the last digits of the error: the exact values come another way."""
    if one is None or other is None:
        # Errors below half the unit of the sums are not kept apart.
        found = one or other
        return found is None or abs(found.error_ulp) < EPSILON
    nan = one.error_ulp != one.error_ulp and other.error_ulp != other.error_ulp
    near = abs(one.error_ulp - other.error_ulp) <= 1e-7 or one.error_ulp == other.error_ulp
    return (one.inputs, one.actual) == (other.inputs, other.actual) and (nan or near)


@pytest.mark.parametrize(("kernel", "formula", "derivative"), KERNELS)
def test_pass_equals_the_general_path(kernel, formula, derivative):
    parts = ranges(formula, derivative)
    found = census(kernel, formula, derivative, parts)
    summary, tallies = general(kernel, formula, derivative, parts)
    assert found.patterns == summary.inputs
    assert found.summary.finite_inputs == summary.finite_inputs
    for region, expected in summary.regions.items():
        got = found.summary.regions[region]
        assert (got.count, got.clipped) == (expected.count, expected.clipped)
        assert (got.histogram == expected.histogram).all()
        assert got.large_square_sum == expected.large_square_sum
        # Next to 0 the series stands for the fast reference; an error may round the other way.
        slack = expected.count if region is Region.TINY else 0
        assert abs(got.signed_sum - expected.signed_sum) <= slack
        assert abs(got.small_square_sum - expected.small_square_sum) <= slack
        assert same(got.worst, expected.worst)
    assert set(found.summary.classes) == set(summary.classes)
    for cls, expected in summary.classes.items():
        got = found.summary.classes[cls]
        assert got.count == expected.count
        assert same(got.first, expected.first)
        assert same(got.worst, expected.worst)
    for name, expected in tallies.items():
        got = found.tallies[name]
        assert got.broken == expected.broken, name
        assert same(got.first, expected.first)
        assert same(got.worst, expected.worst)
    got, expected = found.tallies["cancelling"].usage, tallies["cancelling"].usage
    assert {k: u.count for k, u in got.items()} == {k: u.count for k, u in expected.items()}
    assert all(same(got[k].worst, use.worst) for k, use in expected.items())


@pytest.mark.parametrize(("kernel", "formula", "derivative"), KERNELS)
def test_spreads_are_the_envelope_of_all_elements(kernel, formula, derivative):
    parts = ranges(formula, derivative)
    expected = envelope.reaches(*passes.measured(kernel, formula, derivative, parts))
    found = envelope.of_binades(census(kernel, formula, derivative, parts).spreads)
    assert [astuple(r)[:3] for r in found] == [astuple(r)[:3] for r in expected]
    for got, right in zip(found, expected, strict=True):
        assert got.lowest_ulp == pytest.approx(right.lowest_ulp, rel=1e-9, abs=2e-6)
        assert got.highest_ulp == pytest.approx(right.highest_ulp, rel=1e-9, abs=2e-6)
        if max(abs(right.lowest_ulp), abs(right.highest_ulp)) <= 2.0**24:
            assert got.mean_ulp == pytest.approx(right.mean_ulp, rel=1e-9, abs=2e-6)


def test_a_number_for_nan_is_counted_when_it_is_positive():
    found = census(passes.numbers_for_nan, "erf", 0, [(0x7F800000, 0x7F801000)])
    assert found.summary.classes[Class.NUMBER_FOR_NAN].count == 0xFFF
    assert found.summary.classes[Class.LOST_INFINITY].count == 1
    # What an infinity gives is for the special values check.
    assert found.tallies["cancelling"].broken == 0xFFF
    assert (found.nan_inputs, found.infinite_inputs) == (0xFFF, 1)


def test_one_element_is_found_when_one_is_wrong():
    found = census(faulty_kernels.sign_flips_at_one, "erf", 0, [(0xBF7C0000, 0xBF840000)])
    tally = found.tallies["cancelling"]
    assert tally.broken == 1
    assert tally.worst.inputs == (0xBF800000,)
    assert found.summary.classes[Class.OPPOSITE_SIGN].count == 1


def test_steps_back_are_counted_when_results_are_out_of_order():
    found = census(passes.steps_back, "erf", 0, [(0x3F800000, 0x3F801000)])
    # One of 16 is 40 ULP (of the result: 39 to 80 of x's steps) too large: the next steps back.
    assert found.reversals == 0x1000 // 16
    assert found.reversals_broken == 0x1000 // 16
    assert found.worst_reversal.inputs[0] % 16 == 4


def test_no_step_back_is_seen_when_the_function_turns():
    turning = 0xBF408000
    found = census(faulty_kernels.correct, "erf", 0, [(turning - 0x8000, turning + 0x8000)])
    assert found.reversals == 0


def test_reach_is_the_last_pattern_that_is_not_saturated():
    # x < -6 gives 0, x > 6 gives x: -6 itself does not give 0; identity holds from 5.3475156 on.
    found = census(
        faulty_kernels.guarded, "erf", 0, [(0xC0BF0000, 0xC0C10000), (0x40A00000, 0x40C10000)]
    )
    assert found.zero_reach == 0x40C00000
    # Any rounding of GELU is x from here: 5.3475156 = 0x40AB1ED9 less one pattern at most.
    assert 0x40AB1E00 < found.identity_reach < 0x40AB1F00


def test_results_of_a_call_count_when_the_kernel_uses_its_memory_again():
    parts = [(0x7F7FFFF0, 0x7F800001), (0xFF7FFFF0, 0xFF800001), (0x40000000, 0x40000011)]
    memory = torch.empty(18)

    def again(x):
        memory[: len(x)] = faulty_kernels.correct(x)
        return memory[: len(x)]

    expected = census(faulty_kernels.correct, "erf", 0, parts)
    assert transport.dumps(census(again, "erf", 0, parts)) == transport.dumps(expected)


@pytest.mark.parametrize("value", [math.nan, 0.0, 1.0, math.inf])
def test_infinite_inputs_are_classed_and_break_no_contract(value):
    found = census(lambda x: torch.full_like(x, value), "erf", 0, [(0xFF800000, 0xFF800001)])
    assert found.infinite_inputs == 1
    assert not any(tally.broken for tally in found.tallies.values())
    seen = {cls: tally.count for cls, tally in found.summary.classes.items()}
    due = {math.inf: Class.INFINITY_FOR_FINITE, 0.0: Class.WRONG_ZERO_SIGN}
    expected = Class.NAN_FOR_NUMBER if math.isnan(value) else due.get(value)
    assert seen == ({expected: 1} if expected else {})
