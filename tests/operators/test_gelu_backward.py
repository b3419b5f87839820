"""The backward operator against golden derivatives and hand-made limits."""

from __future__ import annotations

import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest
import torch

from gelu_verify import operators
from gelu_verify.formats import FORMATS, tensors
from gelu_verify.operators import GELU_BACKWARD
from tests.samples import golden, values

FP64, FP32, BF16 = FORMATS["fp64"], FORMATS["fp32"], FORMATS["bf16"]
FORMULAS = ("erf", "tanh", "sigmoid")
INF, NAN = math.inf, math.nan


@pytest.mark.parametrize("formula", FORMULAS)
@pytest.mark.parametrize("dy", [1.0, -3.0, 0.1])
def test_precise_products_are_golden_when_rounded_to_fp64(formula: str, dy: float) -> None:
    table = golden(f"gelu_{formula}_d1")
    x = values([x for x, _ in table], FP64)
    inputs = (values([dy] * len(table), FP64), x)
    actual = GELU_BACKWARD.exact(inputs, formula, FP64).rounded(FP64).tolist()
    for (point, derivative), got in zip(table, actual, strict=True):
        assert got == float(Fraction(dy) * derivative), point


@pytest.mark.parametrize("formula", FORMULAS)
@pytest.mark.parametrize("dy", [1.0, -3.0, 1.25e-30, 2.0**120])
def test_fast_products_are_golden_within_the_stated_bound(formula: str, dy: float) -> None:
    dy = float(np.float32(dy))
    table = [(x, y) for x, y in golden(f"gelu_{formula}_d1") if float(np.float32(x)) == x]
    assert len(table) > 80
    inputs = (values([dy] * len(table), FP32), values([x for x, _ in table], FP32))
    exact = GELU_BACKWARD.exact(inputs, formula, FP32)
    assert 2.0**-53 <= exact.relative_bound <= 32 * 2.0**-53
    for (x, derivative), actual in zip(table, exact.high.tolist(), strict=True):
        y = Fraction(dy) * derivative
        if abs(derivative) > Fraction(1, 2**1000) and abs(y) > Fraction(1, 2**1000):
            assert abs(Fraction(actual) - y) <= Fraction(exact.relative_bound) * abs(y), x


@pytest.mark.parametrize("formula", FORMULAS)
@pytest.mark.parametrize("name", ["fp32", "fp64", "bf16"])
@pytest.mark.parametrize(
    ("dy", "x", "expected"),
    [
        (1.0, INF, 1.0),
        (-2.0, INF, -2.0),
        (1.0, -INF, -0.0),
        (-1.0, -INF, 0.0),
        (1.0, 0.0, 0.5),
        (-3.0, -0.0, -1.5),
        (1.0, -512.0, -0.0),
        (-1.0, -512.0, 0.0),
        (0.0, 1.0, 0.0),
        (-0.0, 1.0, -0.0),
        (0.0, -2.0, -0.0),
        (-0.0, -2.0, 0.0),
        (INF, 1.0, INF),
        (-INF, 1.0, -INF),
        (INF, -2.0, -INF),
        (INF, -INF, NAN),
        (INF, -512.0, -INF),
        (NAN, 1.0, NAN),
        (1.0, NAN, NAN),
        (NAN, -512.0, NAN),
    ],
)
def test_limits_follow_ieee_754(
    formula: str, name: str, dy: float, x: float, expected: float
) -> None:
    fmt = FORMATS[name]
    inputs = (values([dy], fmt), values([x], fmt))
    for evaluate in (GELU_BACKWARD.exact, GELU_BACKWARD.precise):
        actual = float(evaluate(inputs, formula, fmt).rounded(fmt).double()[0])
        if math.isnan(expected):
            assert math.isnan(actual)
        else:
            assert actual == expected
            assert math.copysign(1.0, actual) == math.copysign(1.0, expected)


@pytest.mark.parametrize("formula", FORMULAS)
@pytest.mark.parametrize(
    ("dy", "x", "rounded", "ulp"),
    [
        # An exact tie at x = 0 goes to even, and next to it to the side of the exact value.
        (5e-324, 0.0, 0.0, 5e-324),
        (5e-324, 1e-200, 5e-324, 5e-324),
        (5e-324, -1e-200, 0.0, 5e-324),
        (1.5e-323, -1e-200, 5e-324, 5e-324),
        (-1.5e-323, 1e-200, -1e-323, 5e-324),
        # dy/2 and dy at powers of two: which binade holds the exact value.
        (1.0, 0.0, 0.5, 2.0**-53),
        (1.0, 1e-200, 0.5, 2.0**-53),
        (1.0, -1e-200, 0.5, 2.0**-54),
        (-4.0, -1e-200, -2.0, 2.0**-52),
        (1.0, 1000.0, 1.0, 2.0**-52),
        (1.0, INF, 1.0, 2.0**-52),
    ],
)
def test_exact_value_lies_on_its_side_of_a_limit_that_200_bits_do_not_tell(
    formula: str, dy: float, x: float, rounded: float, ulp: float
) -> None:
    exact = GELU_BACKWARD.precise((values([dy], FP64), values([x], FP64)), formula, FP64)
    assert exact.rounded(FP64).tolist() == [rounded]
    assert exact.ulp_size(FP64).tolist() == [ulp]


def _slack(dy: float, x: float, formula: str) -> float:
    """The documented formula, in mpmath."""
    a = mpmath.mpf(abs(x))
    if formula == "erf":
        slope = mpmath.npdf(a) * (3 + a * a / 2)
    elif formula == "tanh":
        c = mpmath.sqrt(2 / mpmath.pi)
        slope = c * (1 + 3 * mpmath.mpf("0.044715") * a**2)
        slope = slope if c * (a + mpmath.mpf("0.044715") * a**3) < 20 else 0
    else:
        slope = mpmath.mpf("3.404") if 1.702 * a < 39 else 0
    return float(abs(dy) * (1 + a * slope))


@pytest.mark.parametrize("formula", FORMULAS)
def test_cancellation_is_the_documented_slack(formula: str) -> None:
    x = [-30.0, -8.0, -5.0, -3.0, -0.75, 0.0, 0.75, 1.0, 6.0, 7.5, 30.0]
    dy = [1.0, -2.0, 1.0, 0.5, 4.0, 3.0, -1.0, 1.0, 1.0, 1.0, 1.0]
    actual = GELU_BACKWARD.cancellation((values(dy, BF16), values(x, BF16)), formula).tolist()
    expected = [_slack(d, v, formula) for d, v in zip(dy, x, strict=True)]
    assert actual == pytest.approx(expected, rel=1e-13)


@pytest.mark.parametrize(
    ("formula", "x", "expected"),
    [
        ("erf", 0.0, 1.0),
        ("erf", 1.0, 1.8468975358170),  # 1 + φ(1)·3.5
        ("tanh", 1.0, 1.9049167852117657),  # 1 + √(2/π)·1.134145
        ("sigmoid", -2.0, 7.808),  # 1 + 2·3.404
        ("erf", INF, 1.0),
        ("tanh", -INF, 1.0),
        ("sigmoid", INF, 1.0),
    ],
)
def test_cancellation_at_a_point(formula: str, x: float, expected: float) -> None:
    inputs = (values([2.0], FP32), values([x], FP32))
    actual = float(GELU_BACKWARD.cancellation(inputs, formula)[0])
    assert actual == pytest.approx(2 * expected, rel=1e-9)


def test_saturated_is_what_a_guard_returns() -> None:
    dy = values([3.0] * 8 + [NAN], BF16)
    x = values([-6.0, -6.0, -6.0, -5.75, 6.0, 6.0, 6.0, 5.75, 7.0], BF16)
    got = values([0.0, -0.0, 3.0, 0.0, 3.0, 1.0, 6.0, 3.0, NAN], BF16)
    expected = [True, True, False, False, True, False, False, False, False]
    assert GELU_BACKWARD.saturated((dy, x), got, 6.0).tolist() == expected


def test_operator_is_named_and_found() -> None:
    assert operators.get("gelu_backward") is GELU_BACKWARD
    assert (GELU_BACKWARD.arguments, GELU_BACKWARD.derivative) == (("dy", "x"), 1)


def test_exhaustive_bf16_derivative_agrees_between_fast_and_golden_signs() -> None:
    x = tensors.from_bits(torch.arange(2**16), BF16)
    dy = values([1.0], BF16).expand(x.numel())
    high = GELU_BACKWARD.exact((dy, x), "erf", BF16).high
    wide = x.double()
    # GELU' has one zero, at -0.7517915..., and is negative left of it.
    left = (wide < -0.7518) & (wide > -30)
    assert bool((high[left] < 0).all())
    assert bool((high[wide > -0.7517] > 0).all())
    assert float(high[wide.isfinite()].max()) < 1.1289042  # the Lipschitz constant, at √2
