"""Numbers as people read them."""

from __future__ import annotations

import math

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gelu_verify import describe, operators
from gelu_verify.formats import FORMATS, Format
from gelu_verify.measure.summary import Sample
from tests import strategies

FP64, FP32, BF16, FP16 = (FORMATS[name] for name in ("fp64", "fp32", "bf16", "fp16"))
E4M3 = FORMATS["fp8_e4m3fn"]


@pytest.mark.parametrize(
    ("number", "name", "expected"),
    [
        (-8.625, "bf16", "-8.625"),
        (0.1, "fp64", "0.1"),
        (float(np.float32(0.1)), "fp32", "0.1"),
        (2.0**-149, "fp32", "1e-45"),
        (5e-324, "fp64", "5e-324"),
        (448.0, "fp8_e4m3fn", "448.0"),
        (-0.0, "fp16", "-0.0"),
        (math.inf, "fp32", "inf"),
        (-math.inf, "fp64", "-inf"),
        (math.nan, "bf16", "nan"),
    ],
)
def test_value_is_short(number: float, name: str, expected: str) -> None:
    assert describe.value(number, FORMATS[name]) == expected


@pytest.mark.parametrize("name", strategies.ALL)
@given(data=st.data())
def test_value_reads_back_as_the_same(name: str, data: st.DataObject) -> None:
    fmt = FORMATS[name]
    bits = data.draw(strategies.finite_patterns(fmt))
    text = describe.value(fmt.decode(bits), fmt)
    assert fmt.round(mpmath.mpf(text), negative_zero=text.startswith("-")) == bits


@pytest.mark.parametrize(
    ("pattern", "name", "expected"),
    [
        (0xC10A, "bf16", "0xC10A"),
        (1, "fp16", "0x0001"),
        (0x80, "fp8_e5m2", "0x80"),
        (0x3F800000, "fp32", "0x3F800000"),
        (-1, "fp64", "0xFFFFFFFFFFFFFFFF"),
        (-(2**63), "fp64", "0x8000000000000000"),
    ],
)
def test_bits_have_all_their_digits(pattern: int, name: str, expected: str) -> None:
    assert describe.bits(pattern, FORMATS[name]) == expected


@pytest.mark.parametrize(
    ("number", "expected"),
    [
        ("0.84134474606854294858", "0.84134474606854295"),
        ("-5.9195259190000000001e-9", "-5.919525919e-9"),
        ("0", "0.0"),
        ("1.055539e-40", "1.055539e-40"),
    ],
)
def test_exact_has_17_digits(number: str, expected: str) -> None:
    with mpmath.workprec(200):
        wide = mpmath.mpf(number)
    for ambient in (10, 53):
        with mpmath.workprec(ambient):
            assert describe.exact(wide) == expected


def test_point_of_the_forward_operator() -> None:
    sample = Sample((0xC10A,), 0x8000, 1.5)
    point = describe.point(sample, operators.get("gelu"), "erf", BF16)
    assert point.inputs == {"x": "-8.625"}
    assert point.bits == {"x": "0xC10A"}
    # mpmath at 50 digits, by the other arrangement: -8.625·(1 - erf(8.625/√2))/2
    with mpmath.workdps(60):
        expected = -mpmath.mpf("8.625") * (1 - mpmath.erf(mpmath.mpf("8.625") / mpmath.sqrt(2))) / 2
        assert abs(mpmath.mpf(point.exact) - expected) <= abs(expected) * mpmath.mpf("1e-16")
    assert (point.actual, point.actual_bits, point.error_ulp) == ("-0.0", "0x8000", 1.5)
    assert point.shown == "x = -8.625 (0xC10A)"


def test_point_of_the_backward_operator_when_patterns_are_signed() -> None:
    one, minus_two = 0x3FF0000000000000, -(2**63) | 0x4000000000000000
    sample = Sample((minus_two, one), -(2**63), -1.0)
    point = describe.point(sample, operators.get("gelu_backward"), "erf", FP64)
    assert point.inputs == {"dy": "-2.0", "x": "1.0"}
    assert point.bits == {"dy": "0xC000000000000000", "x": "0x3FF0000000000000"}
    # -2·(Φ(1) + φ(1))
    assert float(point.exact) == pytest.approx(-2 * (0.8413447460685429 + 0.24197072451914337))
    assert (point.actual, point.actual_bits) == ("-0.0", "0x8000000000000000")
    assert point.shown == "dy = -2.0 (0xC000000000000000), x = 1.0 (0x3FF0000000000000)"


@pytest.mark.parametrize("fmt", [FP64, FP32, FP16, E4M3], ids=lambda f: f.name)
def test_nans_are_alike_whatever_their_sign(fmt: Format) -> None:
    for number in (math.nan, -math.nan):
        assert describe.value(number, fmt) == "nan"
    for pattern in (fmt.sign_bit - 1, 2 * fmt.sign_bit - 1):
        assert describe.value(fmt.decode(pattern), fmt) == "nan"
