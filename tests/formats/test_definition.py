"""Formats against struct, numpy, ml_dtypes and torch, and rounding against rational arithmetic."""

from __future__ import annotations

import math
import struct
from fractions import Fraction

import ml_dtypes
import mpmath
import numpy as np
import pytest
import torch
from hypothesis import example, given
from hypothesis import strategies as st

from gelu_verify import formats
from gelu_verify.errors import UsageError
from gelu_verify.formats import FORMATS, Format
from tests import strategies
from tests.samples import PUBLISHED, slow_ulp

FP64, FP32, BF16, FP16 = (FORMATS[name] for name in ("fp64", "fp32", "bf16", "fp16"))
E4M3 = FORMATS["fp8_e4m3fn"]
NUMPY = {
    "fp64": np.float64,
    "fp32": np.float32,
    "bf16": ml_dtypes.bfloat16,
    "fp16": np.float16,
    "fp8_e4m3fn": ml_dtypes.float8_e4m3fn,
    "fp8_e5m2": ml_dtypes.float8_e5m2,
}
TORCH = {
    "bf16": torch.bfloat16,
    "fp16": torch.float16,
    "fp8_e4m3fn": torch.float8_e4m3fn,
    "fp8_e5m2": torch.float8_e5m2,
}


def same(one: float, other: float) -> bool:
    if math.isnan(one) or math.isnan(other):
        return math.isnan(one) and math.isnan(other)
    return one == other and math.copysign(1.0, one) == math.copysign(1.0, other)


def as_mpf(exact: Fraction) -> mpmath.mpf:
    """A dyadic rational, exactly."""
    shift = exact.denominator.bit_length() - 1
    assert exact.denominator == 1 << shift
    with mpmath.workprec(max(64, abs(exact.numerator).bit_length())):
        return mpmath.ldexp(mpmath.mpf(exact.numerator), -shift)


def slow_round(exact: Fraction, name: str) -> Fraction | None:
    """Nearest value, ties to the even significand; None beyond the range."""
    unit = slow_ulp(exact, name)
    rounded = round(exact / unit) * unit  # Python rounds a Fraction half to even
    return rounded if abs(rounded) <= PUBLISHED[name][4] else None


@pytest.mark.parametrize("name", PUBLISHED)
def test_parameters_are_those_published(name: str) -> None:
    fmt = formats.get(name)
    bits, precision, emin, emax, largest = PUBLISHED[name]
    assert (fmt.bits, fmt.precision, fmt.emin, fmt.emax) == (bits, precision, emin, emax)
    assert Fraction(fmt.largest) == largest
    assert Fraction(fmt.smallest_normal) == Fraction(2) ** emin
    assert Fraction(fmt.smallest_subnormal) == Fraction(2) ** (emin - precision + 1)
    info = ml_dtypes.finfo(NUMPY[name])
    assert float(info.max) == fmt.largest
    assert float(info.smallest_normal) == fmt.smallest_normal
    assert float(info.smallest_subnormal) == fmt.smallest_subnormal
    assert float(info.eps) == 2 * fmt.unit_roundoff


@pytest.mark.parametrize(
    ("name", "finite", "infinite", "nan", "sign", "infinity", "quiet"),
    [
        ("fp64", 2 * 0x7FF0000000000000, 2, 2**53 - 2, 1 << 63, 0x7FF << 52, 0x7FF8 << 48),
        ("fp32", 2 * 0x7F800000, 2, 2**24 - 2, 1 << 31, 0x7F800000, 0x7FC00000),
        ("bf16", 2 * 0x7F80, 2, 2 * 127, 1 << 15, 0x7F80, 0x7FC0),
        ("fp16", 2 * 0x7C00, 2, 2 * 1023, 1 << 15, 0x7C00, 0x7E00),
        ("fp8_e4m3fn", 254, 0, 2, 0x80, 0x7F, 0x7F),
        ("fp8_e5m2", 248, 2, 6, 0x80, 0x7C, 0x7E),
    ],
)
def test_counts_and_special_patterns_are_those_of_the_standard(
    name: str, finite: int, infinite: int, nan: int, sign: int, infinity: int, quiet: int
) -> None:
    fmt = formats.get(name)
    assert (fmt.finite_count, fmt.nan_count) == (finite, nan)
    assert finite + infinite + nan == 2**fmt.bits
    assert (fmt.sign_bit, fmt.infinity_bits, fmt.nan_bits) == (sign, infinity, quiet)


@pytest.mark.parametrize(
    ("name", "unit"), [("fp64", 2.0**-53), ("fp32", 2.0**-24), ("bf16", 2.0**-24)]
)
def test_arithmetic_is_in_fp32_when_the_format_is_shorter_than_fp64(name: str, unit: float) -> None:
    assert formats.get(name).arithmetic_unit == unit


@pytest.mark.parametrize("name", strategies.SHORT)
def test_every_pattern_decodes_as_in_numpy_and_torch(name: str) -> None:
    fmt = formats.get(name)
    carrier = np.uint8 if fmt.bits == 8 else np.uint16
    patterns = np.arange(2**fmt.bits, dtype=np.uint32).astype(carrier)
    with np.errstate(invalid="ignore"):  # signalling NaNs
        by_numpy = patterns.view(NUMPY[name]).astype(np.float64)
    signed = torch.from_numpy(patterns.view(np.uint8 if fmt.bits == 8 else np.int16))
    by_torch = signed.view(TORCH[name]).to(torch.float64).numpy()
    counts = {"nan": 0, "inf": 0, "finite": 0}
    for bits, (one, other) in enumerate(zip(by_numpy.tolist(), by_torch.tolist(), strict=True)):
        actual = fmt.decode(bits)
        assert same(one, other), f"ml_dtypes and torch disagree at {bits:#x}: {one}, {other}"
        assert same(actual, one), f"{bits:#x}: got {actual}, but should be {one}"
        assert fmt.is_nan(bits) == math.isnan(one)
        kind = "nan" if math.isnan(one) else "inf" if math.isinf(one) else "finite"
        counts[kind] += 1
        if kind != "nan":
            assert fmt.encode(actual) == bits
    assert counts["finite"] == fmt.finite_count
    assert counts["nan"] == fmt.nan_count
    assert sum(counts.values()) == 2**fmt.bits


@pytest.mark.parametrize(("name", "codes"), [("fp64", "<d<Q"), ("fp32", "<f<I"), ("fp16", "<e<H")])
@given(data=st.data())
def test_pattern_decodes_and_encodes_as_in_struct(
    name: str, codes: str, data: st.DataObject
) -> None:
    fmt = formats.get(name)
    bits = data.draw(strategies.patterns(fmt))
    expected = struct.unpack(codes[:2], struct.pack(codes[2:], bits))[0]
    assert same(fmt.decode(bits), expected)
    if not math.isnan(expected):
        assert fmt.encode(expected) == bits


@pytest.mark.parametrize("name", strategies.ALL)
def test_nan_keeps_its_sign_when_encoded(name: str) -> None:
    fmt = formats.get(name)
    assert fmt.encode(math.nan) == fmt.nan_bits
    assert fmt.encode(-math.nan) == fmt.sign_bit | fmt.nan_bits


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("fp32", 0.1),
        ("fp32", 2.0**-150),
        ("fp32", 2.0**128),
        ("bf16", 1 + 2.0**-8),
        ("fp16", 65536.0),
        ("fp8_e4m3fn", 480.0),
        ("fp8_e4m3fn", math.inf),
        ("fp8_e5m2", 1.1),
    ],
)
def test_encode_refuses_when_the_value_is_not_in_the_format(name: str, value: float) -> None:
    with pytest.raises(ValueError, match=name):
        formats.get(name).encode(value)


@pytest.mark.parametrize("name", strategies.SHORT)
def test_ordinals_count_the_values_when_all_are_sorted(name: str) -> None:
    fmt = formats.get(name)
    finite = [b for b in range(2**fmt.bits) if math.isfinite(fmt.decode(b))]
    by_value: dict[float, int] = {}
    for bits in finite:
        by_value.setdefault(fmt.decode(bits), fmt.ordinal(bits))
    ascending = [by_value[value] for value in sorted(by_value)]
    assert ascending == list(range(ascending[0], ascending[0] + len(ascending)))
    assert by_value[0.0] == 0
    assert fmt.ordinal(fmt.sign_bit) == 0
    for bits in finite:
        if bits != fmt.sign_bit:
            assert fmt.from_ordinal(fmt.ordinal(bits)) == bits


@given(bits=strategies.finite_patterns(FP64), steps=st.integers(-3, 3))
def test_neighbour_is_nextafter_when_in_float64(bits: int, steps: int) -> None:
    value = FP64.decode(bits)
    expected = value
    for _ in range(abs(steps)):
        following = math.nextafter(expected, math.copysign(math.inf, steps))
        expected = expected if math.isinf(following) else following
    assert FP64.neighbour(value, steps) == expected


def test_neighbour_stays_finite_when_beyond_the_largest() -> None:
    assert E4M3.neighbour(448.0, 5) == 448.0
    assert FP16.neighbour(-65504.0, -1) == -65504.0
    assert FP32.neighbour(0.0, -1) == -(2.0**-149)


@pytest.mark.parametrize("name", PUBLISHED)
@given(data=st.data())
def test_ulp_agrees_with_counting(name: str, data: st.DataObject) -> None:
    fmt = formats.get(name)
    exact = data.draw(strategies.rationals_near_boundaries(fmt))
    assert fmt.ulp(as_mpf(exact)) == as_mpf(slow_ulp(exact, name))


@given(x=st.floats(allow_nan=False, allow_infinity=False))
def test_ulp_is_that_of_the_library_when_the_value_is_in_the_format(x: float) -> None:
    assert float(FP64.ulp(x)) == math.ulp(x)
    with np.errstate(over="ignore"):
        short = np.float32(x)
    if abs(short) < np.finfo(np.float32).max:  # at which np.spacing overflows
        assert float(FP32.ulp(float(short))) == float(np.spacing(abs(short)))


def test_ulp_is_of_the_unrounded_value_when_it_rounds_to_a_power_of_two() -> None:
    tiny = Fraction(1, 2**200)
    assert FP32.ulp(as_mpf(1 - tiny)) == mpmath.mpf(2) ** -24
    assert FP32.ulp(mpmath.mpf(1)) == mpmath.mpf(2) ** -23
    assert FP32.ulp(as_mpf(1 + tiny)) == mpmath.mpf(2) ** -23
    assert FP32.ulp(as_mpf(-2 + tiny)) == mpmath.mpf(2) ** -23
    assert FP32.ulp(mpmath.mpf(0)) == FP32.ulp(mpmath.mpf(2) ** -500) == mpmath.mpf(2) ** -149
    assert E4M3.ulp(mpmath.mpf(0.01)) == mpmath.mpf(2) ** -9


@pytest.mark.parametrize("name", PUBLISHED)
@given(data=st.data())
def test_rounding_agrees_with_rational_arithmetic(name: str, data: st.DataObject) -> None:
    fmt = formats.get(name)
    exact = data.draw(strategies.rationals_near_boundaries(fmt))
    expected = slow_round(exact, name)
    actual = fmt.decode(fmt.round(as_mpf(exact)))
    if expected is None:
        beyond = (math.inf if exact > 0 else -math.inf) if fmt.infinities else math.nan
        assert same(actual, beyond)
    else:
        assert Fraction(actual) == expected
        if exact:
            assert (math.copysign(1.0, actual) < 0) == (exact < 0)


@given(x=st.floats(allow_nan=False))
@example(x=3.4028235677973366e38)
@example(x=65520.0)
@example(x=2.0**-150)
def test_rounding_agrees_with_numpy_when_the_value_is_a_float64(x: float) -> None:
    with np.errstate(over="ignore", under="ignore"):
        assert same(
            FP32.decode(FP32.round(x, negative_zero=str(x)[0] == "-")), float(np.float32(x))
        )
        assert same(
            FP16.decode(FP16.round(x, negative_zero=str(x)[0] == "-")), float(np.float16(x))
        )


@pytest.mark.parametrize(
    ("name", "exact", "expected"),
    [
        # A tie and its neighbours, far beyond float64: a second rounding would meet a tie.
        ("fp32", 1 + Fraction(1, 2**24), 0x3F800000),
        ("fp32", 1 + Fraction(1, 2**24) + Fraction(1, 2**100), 0x3F800001),
        ("fp32", 1 + Fraction(1, 2**24) - Fraction(1, 2**100), 0x3F800000),
        ("fp32", 1 + Fraction(3, 2**24), 0x3F800002),
        ("fp32", 1 + Fraction(3, 2**24) - Fraction(1, 2**100), 0x3F800001),
        ("fp64", 1 + Fraction(1, 2**53) + Fraction(1, 2**200), 0x3FF0000000000001),
        ("bf16", 1 + Fraction(1, 2**8) + Fraction(1, 2**40), 0x3F81),
        ("fp16", -1 - Fraction(1, 2**11) - Fraction(1, 2**60), 0xBC01),
        # Just below a power of two, carrying over.
        ("fp32", 2 - Fraction(1, 2**24), 0x40000000),
        ("fp32", 2 - Fraction(1, 2**24) - Fraction(1, 2**90), 0x3FFFFFFF),
        # Halves of the smallest subnormal.
        ("fp32", Fraction(1, 2**150), 0),
        ("fp32", Fraction(1, 2**150) + Fraction(1, 2**400), 1),
        ("fp32", -Fraction(1, 2**150), 0x80000000),
        ("fp32", Fraction(3, 2**150), 2),
        ("fp32", Fraction(5, 2**150), 2),
        ("fp64", Fraction(1, 2**1075), 0),
        ("fp64", Fraction(1, 2**1075) + Fraction(1, 2**3000), 1),
        ("fp8_e5m2", Fraction(1, 2**17), 0),
        ("fp8_e4m3fn", Fraction(3, 2**10), 2),
        # The largest subnormal and the smallest normal.
        ("fp32", Fraction(2**24 - 1, 2**150), 0x00800000),
        ("fp32", Fraction(2**24 - 1, 2**150) - Fraction(1, 2**300), 0x007FFFFF),
        # Overflow from half-way above the largest value.
        ("fp32", Fraction(2**128 - 2**103), 0x7F800000),
        ("fp32", Fraction(2**128 - 2**103) - Fraction(1, 2**50), 0x7F7FFFFF),
        ("fp16", Fraction(65520), 0x7C00),
        ("fp16", Fraction(65520) - Fraction(1, 2**100), 0x7BFF),
        ("fp16", -Fraction(10**400), 0xFC00),
        ("fp8_e5m2", Fraction(61440), 0x7C),
        ("fp8_e5m2", Fraction(61439), 0x7B),
        ("fp8_e4m3fn", Fraction(464), 0x7E),
        ("fp8_e4m3fn", Fraction(464) + Fraction(1, 2**100), 0x7F),
        ("fp8_e4m3fn", Fraction(496), 0x7F),
        ("fp8_e4m3fn", -Fraction(10**9), 0xFF),
    ],
)
@pytest.mark.parametrize("ambient", [2, 10, 53, 4000])
def test_rounding_is_single_when_a_double_one_would_differ(
    name: str, exact: Fraction, expected: int, ambient: int
) -> None:
    number = as_mpf(exact)
    with mpmath.workprec(ambient):
        assert formats.get(name).round(number) == expected


def test_precision_in_force_does_not_matter_when_a_float_is_given() -> None:
    for ambient in (2, 10, 53, 500):
        with mpmath.workprec(ambient):
            assert FP64.decode(FP64.round(1.9)) == 1.9
            assert FP32.ulp(1.9999999) == mpmath.mpf(2) ** -23
            assert FP64.round(2**53 - 1) == 0x433FFFFFFFFFFFFF
            assert FP64.round(2**70 + 2**17 + 1) == 0x4450000000000001


@pytest.mark.parametrize("name", strategies.ALL)
def test_special_numbers_keep_their_kind_when_rounded(name: str) -> None:
    fmt = formats.get(name)
    assert fmt.round(mpmath.nan) == fmt.nan_bits
    assert fmt.round(mpmath.inf) == fmt.infinity_bits
    assert fmt.round(-mpmath.inf) == fmt.sign_bit | fmt.infinity_bits
    assert fmt.round(mpmath.mpf(0)) == 0
    assert fmt.round(mpmath.mpf(0), negative_zero=True) == fmt.sign_bit
    assert fmt.round(mpmath.mpf(1), negative_zero=True) == fmt.encode(1.0)


@pytest.mark.parametrize(
    ("text", "name", "expected"),
    [
        ("0x3f800000", "fp32", 0x3F800000),
        ("0XFF", "fp8_e5m2", 0xFF),
        ("1", "bf16", 0x3F80),
        ("-0", "fp32", 0x80000000),
        ("-0.0", "fp16", 0x8000),
        ("-1e-400", "fp32", 0x80000000),
        ("1e400", "fp32", 0x7F800000),
        ("nan", "fp16", 0x7E00),
        ("inf", "fp16", 0x7C00),
        ("-inf", "fp16", 0xFC00),
        ("0.1", "fp32", 0x3DCCCCCD),
        ("0.1", "fp64", 0x3FB999999999999A),
        # 1 + 2^-24, and a hair more: rounding to float64 on the way would lose the hair.
        ("1.000000059604644775390625", "fp32", 0x3F800000),
        ("1.000000059604644775390625000000000000001", "fp32", 0x3F800001),
        # Half the smallest subnormal of fp64 and a hair more.
        ("2.4703282292062328e-324", "fp64", 1),
    ],
)
def test_text_is_parsed_with_a_single_rounding(text: str, name: str, expected: int) -> None:
    for ambient in (5, 53):
        with mpmath.workprec(ambient):
            assert formats.parse(text, formats.get(name)) == expected


@given(x=st.floats(allow_nan=False, allow_infinity=False))
def test_shortest_decimal_is_parsed_back_when_in_float64(x: float) -> None:
    assert formats.parse(repr(x), FP64) == struct.unpack("<Q", struct.pack("<d", x))[0]


@pytest.mark.parametrize("text", ["", "abc", "0x", "0x10000", "-0x1", "1/0", "1,5", "--1"])
def test_wrong_text_is_a_usage_error(text: str) -> None:
    with pytest.raises(UsageError, match="input: got"):
        formats.parse(text, BF16)


def test_unknown_format_is_a_usage_error_naming_the_nearest() -> None:
    with pytest.raises(UsageError, match="Did you mean bf16"):
        formats.get("bf61")


def test_formats_are_those_of_the_design() -> None:
    assert set(FORMATS) == set(PUBLISHED)
    assert all(isinstance(fmt, Format) for fmt in FORMATS.values())
