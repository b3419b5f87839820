"""The forward operator against golden values, scipy and hand-made limits."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
import torch

from gelu_verify import operators
from gelu_verify.errors import UsageError
from gelu_verify.formats import FORMATS, tensors
from gelu_verify.operators import GELU
from tests.samples import golden, values

FP64, FP32, BF16 = FORMATS["fp64"], FORMATS["fp32"], FORMATS["bf16"]
FORMULAS = ("erf", "tanh", "sigmoid")


def rows(formula: str) -> list[tuple[float, Fraction]]:
    return golden(f"gelu_{formula}")


@pytest.mark.parametrize("formula", FORMULAS)
def test_precise_values_are_golden_when_rounded_to_fp64(formula: str) -> None:
    table = rows(formula)
    x = values([x for x, _ in table], FP64)
    for exact in (GELU.exact((x,), formula, FP64), GELU.precise((x,), formula, FP64)):
        assert exact.relative_bound == 0.0
        hair = Fraction(1, 10**39)
        for (point, y), actual in zip(table, exact.rounded(FP64).tolist(), strict=True):
            # Next to a tie 40 digits do not tell which way: subnormals, tested below.
            expected = {float(y * (1 - hair)), float(y * (1 + hair))}
            assert actual in expected, point
            assert len(expected) == 1 or abs(point) < 1e-300


@pytest.mark.parametrize("formula", FORMULAS)
def test_fast_values_are_golden_within_the_stated_bound(formula: str) -> None:
    table = [(x, y) for x, y in rows(formula) if float(np.float32(x)) == x]
    assert len(table) > 80
    exact = GELU.exact((values([x for x, _ in table], FP32),), formula, FP32)
    assert 2.0**-53 <= exact.relative_bound <= 32 * 2.0**-53
    for (x, y), actual in zip(table, exact.high.tolist(), strict=True):
        if abs(y) > Fraction(1, 2**1000):
            assert abs(Fraction(actual) - y) <= Fraction(exact.relative_bound) * abs(y), x


@pytest.mark.parametrize("formula", FORMULAS)
@pytest.mark.parametrize("name", ["fp32", "bf16", "fp16", "fp8_e4m3fn", "fp8_e5m2"])
def test_fast_and_precise_round_alike_when_no_tie_is_near(formula: str, name: str) -> None:
    fmt = FORMATS[name]
    numbers = [-12.0, -8.0, -5.0, -3.5, -2.0, -1.0, -0.75, -0.25, 0.25, 0.75, 1.0, 3.0, 7.0]
    numbers += [0.0, -0.0, math.nan] + ([math.inf, -math.inf] if fmt.infinities else [])
    x = values(numbers, fmt)
    fast, precise = (
        tensors.to_bits(evaluate((x,), formula, fmt).rounded(fmt), fmt).tolist()
        for evaluate in (GELU.exact, GELU.precise)
    )
    for number, one, other in zip(numbers, fast, precise, strict=True):
        assert one == other or (fmt.is_nan(one) and fmt.is_nan(other)), number


@pytest.mark.parametrize("formula", FORMULAS)
@pytest.mark.parametrize("name", ["fp64", "fp32"])
def test_limits_and_signs_of_zero(formula: str, name: str) -> None:
    fmt = FORMATS[name]
    x = values([0.0, -0.0, math.inf, -math.inf, -1e6, math.nan], fmt)
    actual = GELU.exact((x,), formula, fmt).rounded(fmt).double().tolist()
    assert actual[:5] == [0.0, 0.0, math.inf, 0.0, 0.0]
    assert [math.copysign(1.0, y) for y in actual[:5]] == [1.0, -1.0, 1.0, -1.0, -1.0]
    assert math.isnan(actual[5])


@pytest.mark.parametrize("formula", FORMULAS)
@pytest.mark.parametrize(
    ("x", "rounded", "ulp"),
    [
        # x/2 is a tie of fp64 at odd subnormals; the exact value lies towards +∞ of it.
        (5e-324, 5e-324, 5e-324),
        (-5e-324, -0.0, 5e-324),
        (1.5e-323, 1e-323, 5e-324),
        (-1.5e-323, -5e-324, 5e-324),
        # x/2 and x at powers of two: which binade holds the exact value.
        (2.0**-300, 2.0**-301, 2.0**-353),
        (-(2.0**-300), -(2.0**-301), 2.0**-354),
        (2.0**60, 2.0**60, 2.0**7),
        (2.0**1000, 2.0**1000, 2.0**947),
    ],
)
def test_exact_value_lies_on_its_side_of_a_limit_that_200_bits_do_not_tell(
    formula: str, x: float, rounded: float, ulp: float
) -> None:
    exact = GELU.precise((values([x], FP64),), formula, FP64)
    assert exact.rounded(FP64).tolist() == [rounded]
    assert exact.ulp_size(FP64).tolist() == [ulp]


def test_ulp_is_that_of_the_side_when_fast_as_when_precise() -> None:
    x = values([2.0**-60, -(2.0**-60), 2.0**60, 1.0, -1.0], FP32)
    expected = [2.0**-84, 2.0**-85, 2.0**36, 2.0**-24, 2.0**-26]
    for evaluate in (GELU.exact, GELU.precise):
        assert evaluate((x,), "erf", FP32).ulp_size(FP32).tolist() == expected


@pytest.mark.parametrize("formula", FORMULAS)
def test_cancellation_is_the_size_of_x(formula: str) -> None:
    x = values([-5.5, -0.0, 3.0, 1.0], BF16)
    assert GELU.cancellation((x,), formula).tolist() == [5.5, 0.0, 3.0, 1.0]


def test_saturated_is_what_a_guard_returns() -> None:
    x = values([-6.0, -6.0, -6.0, -5.75, 6.0, 6.0, 5.75, 6.0, -8.0, math.nan], BF16)
    got = values([0.0, -0.0, -6.0, 0.0, 6.0, 5.75, 5.75, 0.0, math.nan, math.nan], BF16)
    expected = [True, True, False, False, True, False, False, False, False, False]
    assert GELU.saturated((x,), got, 6.0).tolist() == expected
    assert GELU.saturated((x,), got, 6.5).tolist() == [False] * 10


def test_operator_is_named_and_found() -> None:
    assert operators.get("gelu") is GELU
    assert (GELU.arguments, GELU.derivative) == (("x",), 0)
    with pytest.raises(UsageError, match="Did you mean gelu"):
        operators.get("gellu")
    with pytest.raises(UsageError, match="Did you mean tanh"):
        operators.require_formula("tan")
    with pytest.raises(UsageError, match="none"):
        operators.require_formula("none")


def test_inputs_are_not_changed() -> None:
    x = values([-1.0, 2.0], FP32)
    GELU.exact((x,), "erf", FP32)
    assert torch.equal(x, torch.tensor([-1.0, 2.0]))
