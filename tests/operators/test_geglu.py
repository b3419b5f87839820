"""f(gate)·up against golden values and hand-made limits."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
import torch

from gelu_verify import operators
from gelu_verify.formats import FORMATS, tensors
from gelu_verify.operators import GEGLU
from tests.samples import golden, values

FP64, FP32, BF16, FP16 = (FORMATS[name] for name in ("fp64", "fp32", "bf16", "fp16"))
FORMULAS = ("erf", "tanh", "sigmoid")
INF, NAN = math.inf, math.nan


@pytest.mark.parametrize("formula", FORMULAS)
@pytest.mark.parametrize("up", [1.0, -3.0, 0.1])
def test_precise_products_are_golden_when_rounded_to_fp64(formula: str, up: float) -> None:
    # 40 digits do not tell which way a product rounds that lies next to a tie, as of f(12) = 12.
    hair = Fraction(1, 10**38)
    table = [(x, y) for x, y in golden(f"gelu_{formula}") if abs(y) > Fraction(1, 2**900)]
    inputs = (values([x for x, _ in table], FP64), values([up] * len(table), FP64))
    actual = GEGLU.exact(inputs, formula, FP64).rounded(FP64).tolist()
    for (point, y), got in zip(table, actual, strict=True):
        expected = {float(Fraction(up) * y * (1 + sign * hair)) for sign in (1, -1)}
        assert got in expected, point
        assert len(expected) == 1 or point > 5 or abs(point) < 1e-15


@pytest.mark.parametrize("formula", FORMULAS)
@pytest.mark.parametrize("up", [1.0, -3.0, 1.25e-30, 2.0**120])
def test_fast_products_are_golden_within_the_stated_bound(formula: str, up: float) -> None:
    up = float(np.float32(up))
    table = [(x, y) for x, y in golden(f"gelu_{formula}") if float(np.float32(x)) == x]
    inputs = (values([x for x, _ in table], FP32), values([up] * len(table), FP32))
    exact = GEGLU.exact(inputs, formula, FP32)
    assert 2.0**-53 <= exact.relative_bound <= 32 * 2.0**-53
    checked = 0
    for (_, y), actual in zip(table, exact.high.tolist(), strict=True):
        product = Fraction(up) * y
        if abs(y) > Fraction(1, 2**1000) and abs(product) > Fraction(1, 2**1000):
            checked += 1
            assert abs(Fraction(actual) - product) <= Fraction(exact.relative_bound) * abs(product)
    assert checked > 60, "the table has too few usable rows"


@pytest.mark.parametrize("name", ["fp32", "fp64", "bf16"])
@pytest.mark.parametrize(
    ("gate", "up", "expected"),
    [
        (INF, 1.0, INF), (INF, -2.0, -INF), (-INF, 1.0, -0.0), (-INF, -1.0, 0.0),
        (0.0, 3.0, 0.0), (0.0, -3.0, -0.0), (-0.0, -3.0, 0.0), (2.0, -0.0, -0.0),
        (-INF, INF, NAN), (0.0, INF, NAN), (INF, 0.0, NAN), (NAN, 1.0, NAN), (1.0, NAN, NAN),
        # f is nowhere 0 but at 0: next to -inf it is negative, however small.
        (-512.0, INF, -INF), (-512.0, -INF, INF), (-512.0, 2.0, -0.0),
    ],
)  # fmt: skip
def test_limits_follow_ieee_754(name: str, gate: float, up: float, expected: float) -> None:
    fmt = FORMATS[name]
    inputs = (values([gate], fmt), values([up], fmt))
    for evaluate in (GEGLU.exact, GEGLU.precise):
        got = float(evaluate(inputs, "erf", fmt).rounded(fmt).double()[0])
        if math.isnan(expected):
            assert math.isnan(got)
        else:
            assert got == expected
            assert math.copysign(1.0, got) == math.copysign(1.0, expected)


def test_fast_and_precise_agree_on_ties_when_f_is_gate_or_half_of_it() -> None:
    # 1.5·1.0078125 = 1.51171875 lies halfway between two numbers of bf16 with 8 bits.
    gate = values([96.0, 96.0, 2.0**-70 * 1.5, -(2.0**-70) * 1.5, 48.0], BF16)
    up = values([1.0078125, -1.0078125, 1.0078125, 1.0078125, 1.0], BF16)
    inputs = (gate, up)
    side = GEGLU.side_of_tie(inputs).tolist()
    assert side == [-1.0, 1.0, 1.0, 1.0, -1.0]
    exact = GEGLU.exact(inputs, "erf", BF16).high
    rounded = GEGLU.precise(inputs, "erf", BF16).rounded(BF16).double()
    for number, toward, got in list(zip(exact.tolist(), side, rounded.tolist(), strict=True))[:4]:
        assert (got - number) * toward > 0


def test_reach_is_a_unit_of_f_or_half_the_smallest_subnormal() -> None:
    gate, up = values([1.0, -5.0, -5.75], FP16), values([2.0, -3.0, 60000.0], FP16)
    below, above = GEGLU.reach((gate, up), "erf", FP16)
    assert torch.equal(below, above)
    # Φ(1) = 0.8413447460685429; f(-5) = -1.4332578596e-06 is subnormal, as is f(-5.75).
    expected = [2 * 2.0**-11 * 0.8413447460685429, 3 * 2.0**-25, float(up[2]) * 2.0**-25]
    assert below.tolist() == pytest.approx(expected, rel=1e-9)


def test_cancellation_and_saturation_are_those_of_both_factors() -> None:
    gate, up = values([-6.0, 6.5, 6.5, -5.0], BF16), values([3.0, 3.0, 3.0, 2.0], BF16)
    assert GEGLU.cancellation((gate, up), "erf").tolist() == [18.0, 19.5, 19.5, 10.0]
    got = values([0.0, 19.5, 6.5, 0.0], BF16)
    assert GEGLU.saturated((gate, up), got, 6.0).tolist() == [True, True, False, False]


def test_operator_is_named_and_found() -> None:
    assert operators.get("geglu") is GEGLU
    bits = tensors.to_bits(operators.at_neutral(GEGLU.arguments, values([2.0], BF16))[1], BF16)
    assert bits.tolist() == [0x3F80]
