"""The algebra: what is promised, what is open, and what float64 itself loses."""

from __future__ import annotations

import math

import mpmath
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from gelu_verify.bounds import Bounded, bounded, exactly, roots, selection
from gelu_verify.bounds.softmax import softmax
from gelu_verify.formats import FORMATS
from tests.operators.fused.samples import arithmetic


def column(*values: float) -> torch.Tensor:
    return torch.tensor(values, dtype=torch.float64)


def moved(value: torch.Tensor, by: float) -> Bounded:
    zero = torch.zeros_like(value)
    return Bounded(value, zero, {"given": zero + by})


@pytest.mark.parametrize("name", ["fp64", "fp32", "bf16", "fp16"])
def test_half_ulp_is_half_the_distance_of_neighbours(name: str) -> None:
    fmt = FORMATS[name]
    for bits in (1, 2, fmt.encode(fmt.smallest_normal), fmt.encode(1.0), fmt.encode(1.5)):
        gap = fmt.decode(bits + 1) - fmt.decode(bits)
        found = float(bounded.half_ulp(column(fmt.decode(bits)), fmt))
        assert found == max(gap / 2, 2.0**-1074)
    least = max(fmt.smallest_subnormal / 2, 2.0**-1074)
    assert float(bounded.half_ulp(column(0.0), fmt)) == least


@pytest.mark.parametrize("name", ["fp64", "fp32"])
def test_elementwise_work_is_rounded_in_its_arithmetic(name: str) -> None:
    three = exactly(column(3.0))
    unit = 2.0 ** -FORMATS[name].precision
    for found, roundings in (
        (bounded.multiply(three, three, arithmetic(name)), 1),
        (bounded.scaled(three, 3.0, arithmetic(name)), 2),
    ):
        assert float(found.total) == pytest.approx(roundings * unit * 9, rel=1e-6)


def test_a_sum_may_start_with_its_bias() -> None:
    # Products of 2^-24 vanish one by one beside a bias of 1.
    row, ones = torch.full((1, 64), 2.0**-25), torch.ones(64, 1)
    bias, total = exactly(torch.ones(1)), torch.ones(1)
    for product in row[0]:
        total = total + product
    exact = bounded.matmul(exactly(row), exactly(ones), arithmetic("fp32"), start=bias)
    error = abs(float(total) - float(exact.value))
    assert error == 64 * 2.0**-25
    assert error <= float(exact.total) <= 3 * error


def test_sums_that_may_overflow_promise_nothing() -> None:
    a, b = torch.full((1, 2), 2.0**127), torch.tensor([[2.0], [-2.0]])
    assert float(bounded.matmul(exactly(a), exactly(b), arithmetic("fp32")).total) == math.inf
    assert float(bounded.add(exactly(a), exactly(a), arithmetic("fp32")).total[0, 0]) == math.inf


def test_what_float64_overflows_is_not_called_an_infinity() -> None:
    a = torch.tensor([[1e308, 1e308, -1e308]], dtype=torch.float64)
    b = torch.full((3, 1), 2.0, dtype=torch.float64)
    lost = bounded.matmul(exactly(a), exactly(b), arithmetic("fp64"))
    assert float(lost.value) == 0.0
    assert float(lost.total) == math.inf
    special = torch.tensor([[math.inf, 1.0, 1.0]], dtype=torch.float64)
    kept = bounded.matmul(exactly(special), exactly(b), arithmetic("fp64"))
    assert float(kept.value) == math.inf


def test_products_that_underflow_are_allowed_their_loss() -> None:
    tiny = torch.full((1, 3), 2.0**-80)
    exact = bounded.matmul(exactly(tiny), exactly(tiny.t()), arithmetic("fp32"))
    assert float(exact.value) > 0
    assert float(exact.total) >= float(exact.value)


def test_a_cast_that_may_overflow_promises_nothing() -> None:
    large = exactly(column(65504.0, 65536.0))
    found = bounded.cast(large, "any", arithmetic("fp16")).total
    assert found[0] == pytest.approx(16.0)
    assert found[1] == math.inf


def test_a_repeated_number_takes_the_worst_case() -> None:
    # A sum in fp32, one after another: each rounds the same way over a whole binade.
    row = torch.full((1, 4096), 0.1)
    total = torch.zeros(())
    for term in row[0]:
        total = total + term
    exact = bounded.total(exactly(row), 1, arithmetic("fp32"))
    other = row.clone()
    other[0, 0] = 0.2
    likely = bounded.total(exactly(other), 1, arithmetic("fp32"))
    assert abs(float(total) - float(exact.value)) <= float(exact.total)
    assert float(exact.total) > 5 * float(likely.total)


@given(st.floats(0, 100), st.floats(0, 50), st.floats(-1, 1))
def test_a_reciprocal_root_moves_no_further_than_its_slack(a: float, by: float, at: float) -> None:
    exact = roots.reciprocal_root(moved(column(a), by), 1e-5, arithmetic("fp32"))
    other = max(a + at * by, 0.0)
    with mpmath.workprec(200):
        error = abs(1 / mpmath.sqrt(mpmath.mpf(other) + mpmath.mpf("1e-5")) - float(exact.value))
    assert float(error) <= float(exact.total) + float(exact.own)


@given(st.lists(st.floats(-60, 60), min_size=1, max_size=5), st.floats(0, 30), st.data())
def test_probabilities_move_no_further_than_their_slack(
    scores: list[float], by: float, data: st.DataObject
) -> None:
    exact = softmax(moved(column(*scores), by), arithmetic("fp32"))
    signs = data.draw(st.lists(st.sampled_from((-1, 0, 1)), min_size=5, max_size=5))
    with mpmath.workprec(300):
        weights = [
            mpmath.exp(mpmath.mpf(s) + sign * mpmath.mpf(by))
            for s, sign in zip(scores, signs, strict=False)
        ]
        errors = [
            float(abs(w / mpmath.fsum(weights) - float(p)))
            for w, p in zip(weights, exact.value, strict=True)
        ]
    allowed = (exact.total + exact.own).tolist()
    assert all(error <= most for error, most in zip(errors, allowed, strict=True))


@given(
    st.lists(st.tuples(st.floats(-5, 5), st.floats(0, 3), st.floats(-1, 1)), min_size=4, max_size=4)
)
def test_a_maximum_moves_no_further_than_its_slack(
    elements: list[tuple[float, float, float]],
) -> None:
    value, by, at = (column(*part) for part in zip(*elements, strict=True))
    a = Bounded(value, torch.zeros_like(value), {"given": by})
    other = value + at * by
    exact = selection.rectified_maximum(a)
    error = abs(float(other.amax().clamp(min=0)) - float(exact.value))
    assert error <= float(exact.total) * (1 + 1e-12)
    # And whatever the pick, its gradient is allowed.
    picked = torch.zeros(4, dtype=torch.float64)
    picked[int(other.argmax())] = float(other.amax() > 0)
    routed = selection.routed(torch.ones((), dtype=torch.float64), a)
    assert bool(((picked - routed.value).abs() <= routed.total).all())


def test_a_gradient_of_a_certain_pick_has_no_slack() -> None:
    a = moved(column(3.0, 1.0, -1.0, 0.0), 0.5)
    routed = selection.routed(column(2.0).squeeze(), a)
    assert routed.value.tolist() == [2.0, 0.0, 0.0, 0.0]
    assert routed.total.tolist() == [0.0] * 4
    below = selection.routed(column(2.0).squeeze(), moved(column(-3.0, -1.0, -2.0, -0.6), 0.5))
    assert below.value.tolist() == below.total.tolist() == [0.0] * 4


def test_infinity_times_zero_is_open_when_the_zero_is_not_exact() -> None:
    unsure = Bounded(column(0.0, 0.0, 1.0), column(0.0, 0.0, 0.0), {"given": column(0.0, 1.0, 1.0)})
    factor = exactly(column(math.inf, -math.inf, math.inf))
    for product in (
        bounded.multiply(unsure, factor, arithmetic("fp32")),
        bounded.multiply(factor, unsure, arithmetic("fp32")),
    ):
        # An exact 0 gives NaN; else a kernel may have ±inf as well, and nothing is promised.
        assert math.isnan(product.value[0])
        assert product.value[1] == 0
        assert not math.isfinite(product.total[1])
        assert product.value[2] == math.inf
