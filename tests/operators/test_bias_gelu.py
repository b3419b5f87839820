"""f(x + bias) against mpmath at another precision, at sums that float64 does not hold too."""

from __future__ import annotations

import math

import mpmath
import pytest
import torch

from gelu_verify import operators
from gelu_verify.formats import FORMATS, tensors
from gelu_verify.operators import BIAS_GELU
from gelu_verify.operators.bias_gelu import SUM_ERROR
from tests.samples import measured, values

FP64, FP32, BF16, FP16 = (FORMATS[name] for name in ("fp64", "fp32", "bf16", "fp16"))
FORMULAS = ("erf", "tanh", "sigmoid")
INF, NAN = math.inf, math.nan


def truth(formula: str, x: float, bias: float, bits: int = 400):
    """The formula as published."""
    with mpmath.workprec(bits):
        s = mpmath.mpf(x) + mpmath.mpf(bias)
        if formula == "erf":
            return s * mpmath.erfc(-s / mpmath.sqrt(2)) / 2
        if formula == "tanh":
            u = mpmath.sqrt(2 / mpmath.pi) * (s + mpmath.mpf("0.044715") * s**3)
            return s / (1 + mpmath.exp(-2 * u))
        return s / (1 + mpmath.exp(-mpmath.mpf("1.702") * s))


def pairs(fmt, count: int = 45) -> tuple[torch.Tensor, torch.Tensor]:
    """Pairs whose sum is from -14 to 9, with terms of like and of very different size."""
    generator = torch.Generator().manual_seed(5)
    s = torch.rand(count, generator=generator, dtype=torch.float64) * 23 - 14
    share = torch.randn(count, generator=generator, dtype=torch.float64) * 2
    share[::3] = 2.0 ** -torch.randint(5, 60, (len(share[::3]),), generator=generator).double()
    x = tensors.round_float64(s * share, fmt)
    return x, tensors.round_float64(s - x.double(), fmt)


@pytest.mark.parametrize("formula", FORMULAS)
@pytest.mark.parametrize("fmt", [FP32, BF16, FP16], ids=lambda fmt: fmt.name)
def test_fast_value_is_within_its_bound_of_the_truth(formula: str, fmt) -> None:
    x, bias = pairs(fmt)
    exact = BIAS_GELU.exact((x, bias), formula, fmt)
    assert exact.relative_bound == SUM_ERROR
    worst = 0.0
    for a, b, got in zip(x.double().tolist(), bias.double().tolist(), exact.high.tolist(),
                         strict=True):  # fmt: skip
        y = truth(formula, a, b)
        worst = max(worst, float(abs(mpmath.mpf(got) - y) / abs(y)))
    assert worst <= SUM_ERROR
    assert worst < 2.0**-43  # what was seen: far below the sum of the worst cases


@pytest.mark.parametrize("formula", FORMULAS)
def test_precise_value_is_the_truth_rounded_when_the_sum_needs_more_than_53_bits(formula) -> None:
    x = [1.0, -3.0, 2.0**-30, 40.0, -7.5, 1e300, 1e-300, 0.5]
    bias = [2.0**-80, 2.0**-200, -(2.0**-120), 2.0**-1074, 2.0**-90, 1e-300, -5e-324, -0.25]
    inputs = (values(x, FP64), values(bias, FP64))
    got = BIAS_GELU.precise(inputs, formula, FP64).rounded(FP64).tolist()
    for a, b, number in zip(x, bias, got, strict=True):
        expected = float(truth(formula, a, b, 3000))
        assert number == expected, (a, b)


@pytest.mark.parametrize(
    ("x", "bias", "above"),
    [
        # Far right f(s) is nearer to s than any number to s, but s itself lies beside x.
        (64.0, 2.0**-133, True),
        (64.0, -(2.0**-133), False),
        (64.0, 0.0, False),
        (2.0**100, 2.0**-133, True),
        (2.0**100, 0.0, False),
    ],
)
def test_exact_value_lies_on_its_side_of_a_power_of_two(x, bias, above) -> None:
    inputs = (values([x], BF16), values([bias], BF16))
    for evaluate in (BIAS_GELU.exact, BIAS_GELU.precise):
        # The ULP of numbers just below a power of two is half that of those above.
        exponent = math.log2(x) if above else math.log2(x) - 1
        assert evaluate(inputs, "erf", BF16).ulp_size(BF16).tolist() == [2.0 ** (exponent - 7)]
    side = float(BIAS_GELU.side_of_tie(inputs)[0])
    assert side == (1.0 if above else -1.0)


@pytest.mark.parametrize("name", ["fp32", "fp64", "bf16"])
@pytest.mark.parametrize(
    ("x", "bias", "expected"),
    [
        (INF, 1.0, INF), (-INF, 1.0, -0.0), (INF, -INF, NAN), (NAN, 1.0, NAN), (1.0, NAN, NAN),
        (1.0, -1.0, 0.0), (-0.0, -0.0, -0.0), (-0.0, 0.0, 0.0), (0.0, -0.0, 0.0),
        (1.0, INF, INF), (-512.0, -512.0, -0.0),
    ],
)  # fmt: skip
def test_limits_follow_ieee_754(name, x, bias, expected) -> None:
    fmt = FORMATS[name]
    inputs = (values([x], fmt), values([bias], fmt))
    for evaluate in (BIAS_GELU.exact, BIAS_GELU.precise):
        got = float(evaluate(inputs, "erf", fmt).rounded(fmt).double()[0])
        assert (math.isnan(got) and math.isnan(expected)) or got == expected
        assert math.isnan(expected) or math.copysign(1.0, got) == math.copysign(1.0, expected)


@pytest.mark.parametrize("formula", FORMULAS)
@pytest.mark.parametrize("name", ["bf16", "fp16", "fp32"])
def test_reach_is_that_of_every_sum_within_a_unit(formula: str, name: str) -> None:
    fmt = FORMATS[name]
    x, bias = pairs(fmt, 12)
    # The minimum of f lies inside the last two.
    x[-2:] = torch.tensor([-0.75, -0.7695]).to(x.dtype)
    bias[-2:] = 0.0
    below, above = BIAS_GELU.reach((x, bias), formula, fmt)
    for index, s in enumerate((x.double() + bias.double()).tolist()):
        y = truth(formula, s, 0.0)
        steps = [mpmath.mpf(k) / 16 * fmt.unit_roundoff for k in range(-16, 17)]
        with mpmath.workprec(120):
            others = [truth(formula, s * (1 + step), 0.0, 120) for step in steps]
        low, high = float(y - min(others)), float(max(others) - y)
        slack = 2.0**-40 * abs(float(y))
        assert float(below[index]) >= low - slack
        assert float(above[index]) >= high - slack
        assert float(below[index]) <= 1.01 * low + slack
        assert float(above[index]) <= 1.01 * high + slack


def test_reach_of_fp64_covers_a_sum_one_unit_away() -> None:
    s = [-30.0, -8.0, -3.0, -0.7517915, 1.0, 8.0]
    inputs = (values(s, FP64), values([0.0] * len(s), FP64))
    below, above = BIAS_GELU.reach(inputs, "erf", FP64)
    for index, number in enumerate(s):
        for sign in (1, -1):
            moved = truth("erf", number, sign * abs(number) * 2.0**-53)
            move = float(moved - truth("erf", number, 0.0))
            assert move <= float(above[index])
            assert -move <= float(below[index])
            assert float(above[index]) <= 1.1 * abs(move) + number * number * 2.0**-105


def test_cancellation_and_saturation_are_those_of_the_sum() -> None:
    x, bias = values([-4.0, 4.0, 4.0, -4.0], BF16), values([-2.5, 3.0, 3.0, -1.0], BF16)
    assert BIAS_GELU.cancellation((x, bias), "erf").tolist() == [6.5, 7.0, 7.0, 5.0]
    got = values([0.0, 7.0, 4.0, 0.0], BF16)
    assert BIAS_GELU.saturated((x, bias), got, 6.0).tolist() == [True, True, False, False]


def test_kernel_is_called_with_a_row_and_a_vector() -> None:
    x, bias = torch.arange(3.0), torch.arange(3.0)
    row, vector = BIAS_GELU.shaped((x, bias))
    assert (row.shape, vector.shape) == ((1, 3), (3,))
    matrix, vector = BIAS_GELU.shaped((torch.ones(2, 5, 3), bias.expand(2, 5, 3)))
    assert (matrix.shape, vector.tolist()) == ((2, 5, 3), [0.0, 1.0, 2.0])


def test_operator_is_named_and_found() -> None:
    assert operators.get("bias_gelu") is BIAS_GELU
    assert operators.place(BIAS_GELU.arguments) == 0


def test_regions_are_those_of_the_sum() -> None:
    part = measured((values([-1.0], BF16), values([-9.0], BF16)), values([-0.0], BF16), BF16,
                    "bias_gelu")  # fmt: skip
    assert part.x.tolist() == [-10.0]
