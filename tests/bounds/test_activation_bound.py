"""The activation at any float64, its slopes, and what contracts allow it, against mpmath."""

from __future__ import annotations

import math

import mpmath
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from gelu_verify.bounds import activation, bounded, epilogue
from gelu_verify.reference import oracle
from tests.operators.fused.samples import arithmetic

FORMULAS = ("erf", "tanh", "sigmoid")
#: The zero of f', beside which its terms cancel; tails that underflow; the least and large numbers.
NASTY = (
    -0.7517915246935645,
    -0.7517915246935644,
    -0.6557564,
    -38.41200270513317,
    -37.964565633172555,
    -21.419283462621756,
    5e-324,
    -1e-310,
    700.0,
    -700.0,
    0.0,
)


def near(x: float) -> st.SearchStrategy[float]:
    return st.integers(-50, 50).map(lambda steps: x * (1 + steps * 2.0**-52))


points = st.one_of(
    st.floats(-45, 45),
    st.floats(-1, 1),
    st.sampled_from(NASTY),
    near(-0.7517915246935645),
    near(-math.sqrt(2)),
)


@pytest.mark.parametrize("formula", FORMULAS)
@pytest.mark.parametrize("order", [0, 1])
def test_value_is_within_its_error(formula: str, order: int) -> None:
    @given(points)
    def holds(x: float) -> None:
        y, error = activation.value(torch.tensor([x], dtype=torch.float64), formula, order)
        exact = oracle.value(formula, x, derivative=order)
        with mpmath.workprec(300):
            assert float(abs(mpmath.mpf(float(y)) - exact)) <= float(error), x

    holds()


def test_the_error_is_of_the_size_of_a_rounding_where_fp64_needs_it() -> None:
    x = torch.tensor([0.5, 1.0, 3.0, 10.0, 1e300], dtype=torch.float64)
    y, error = activation.value(x, "erf")
    assert bool((error <= 16 * 2.0**-53 * y).all())


def test_special_values_keep_their_kind() -> None:
    x = torch.tensor([math.inf, -math.inf, math.nan], dtype=torch.float64)
    y, error = activation.value(x, "erf")
    assert y[0] == math.inf
    assert y[1] == 0.0
    assert math.isnan(y[2])
    assert error[2] == 0.0


def test_the_lipschitz_constant_of_gelu_is_that_at_the_root_of_two() -> None:
    everywhere = torch.tensor([-20.0, 20.0], dtype=torch.float64)
    found = float(activation.steepest(everywhere[:1], everywhere[1:], "erf"))
    with mpmath.workdps(30):
        exact = oracle.value("erf", mpmath.sqrt(2), derivative=1)
    assert f"{float(exact):.6f}" == "1.128904"
    assert float(exact) <= found <= float(exact) * (1 + 1e-8)
    places = [place for place, _ in activation.extremes("erf", 1)]
    assert places == pytest.approx([-math.sqrt(2), math.sqrt(2)], abs=1e-7)
    # f'' = φ(x)(2 - x²), f''' = φ(x)·x·(x² - 4).
    places = [place for place, _ in activation.extremes("erf", 2)]
    assert places == pytest.approx([-2.0, 0.0, 2.0], abs=1e-6)


@pytest.mark.parametrize("formula", FORMULAS)
@pytest.mark.parametrize("order", [1, 2])
def test_no_point_of_an_interval_is_steeper(formula: str, order: int) -> None:
    @given(st.floats(-14, 14), st.floats(0, 6), st.floats(0, 1))
    def holds(low: float, width: float, share: float) -> None:
        high = low + width
        ends = (torch.tensor([end], dtype=torch.float64) for end in (low, high))
        found = float(activation.steepest(*ends, formula, order))
        inside = min(max(low + share * width, low), high)
        assert float(abs(oracle.value(formula, inside, derivative=order))) <= found

    holds()


def test_method_gap_is_the_distance_of_the_formulas() -> None:
    # Published: the tanh form is within 5e-4 of erf's; here both ends from mpmath on a grid.
    for order, published in ((0, 4.74e-4), (1, 8.70e-4)):
        found = epilogue.method_gap("erf", "tanh", order)
        seen = max(
            float(
                abs(
                    oracle.value("erf", i / 64, derivative=order)
                    - oracle.value("tanh", i / 64, derivative=order)
                )
            )
            for i in range(-400, 400)
        )
        assert seen <= found <= published + 1e-5
    assert epilogue.method_gap("tanh", "tanh", 0) == 0.0


def test_a_guard_costs_what_it_cuts_off() -> None:
    s = bounded.exactly(torch.tensor([-6.5, -6.0, -5.9, 3.0, 6.5]).double())
    saturating = bounded.activate(s, "erf", arithmetic("fp64", "saturating"))
    plain = bounded.activate(s, "erf", arithmetic("fp64", "tail_accurate"))
    extra = (saturating.total - plain.total).tolist()
    cut = float(abs(oracle.value("erf", -6.5)))
    assert extra[0] == pytest.approx(cut, rel=1e-6)
    assert extra[1] == pytest.approx(5.9195e-9, rel=1e-4)
    assert extra[2] == extra[3] == 0.0
    assert extra[4] == pytest.approx(cut, rel=1e-4)
