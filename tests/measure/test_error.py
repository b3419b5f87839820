"""The error measure against rational arithmetic; every class of failure by a directed case."""

from __future__ import annotations

import math
from fractions import Fraction

import mpmath
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from gelu_verify.formats import FORMATS, Format, tensors
from gelu_verify.measure.error import Class, Errors, measure, steps
from gelu_verify.reference.exact import FastExact, PreciseExact
from tests import strategies
from tests.samples import elements, golden, slow_quantum, slow_ulp, values

FP64, FP32, BF16, FP16 = (FORMATS[name] for name in ("fp64", "fp32", "bf16", "fp16"))
E4M3, E5M2 = FORMATS["fp8_e4m3fn"], FORMATS["fp8_e5m2"]
INF, NAN = math.inf, math.nan


def fast(exact: list[float], inward: list[bool] | None = None) -> FastExact:
    high = torch.tensor(exact, dtype=torch.float64)
    return FastExact(high, torch.tensor(inward or [False] * len(exact)), 0.0)


def precise(exact: list[Fraction], fmt: Format) -> PreciseExact:
    def as_mpf(number: Fraction) -> mpmath.mpf:
        with mpmath.workprec(2000):
            return mpmath.mpf(number.numerator) / number.denominator

    return PreciseExact([as_mpf(y) for y in exact], [y < 0 for y in exact], fmt)


def one(got: float, exact: float, fmt: Format = FP32, inward: bool = False) -> Errors:
    return measure(values([got], fmt), fast([exact], [inward]), fmt)


def slow_error(got: float, exact: Fraction, fmt: Format) -> Fraction:
    return (Fraction(got) - exact) / slow_ulp(exact, fmt.name)


def as_float(number: Fraction) -> float:
    try:
        return float(number)
    except OverflowError:
        return INF if number > 0 else -INF


@pytest.mark.parametrize("name", strategies.BELOW_FP64)
@given(data=st.data())
def test_error_is_that_of_rational_arithmetic(name: str, data: st.DataObject) -> None:
    fmt = FORMATS[name]
    pair = st.tuples(strategies.finite_values(fmt), strategies.float64s_for(fmt))
    pairs = data.draw(st.lists(pair, min_size=1, max_size=20))
    pairs = [(g, y) for g, y in pairs if abs(y) <= fmt.largest]
    got, exact = [g for g, _ in pairs], [y for _, y in pairs]
    errors = measure(values(got, fmt), fast(exact), fmt)
    for index, (g, y) in enumerate(pairs):
        difference = Fraction(g) - Fraction(y)
        size = slow_ulp(Fraction(y), name)
        # The subtraction in float64 rounds once; the division by a power of two does not.
        assert float(errors.ulp[index]) == float(difference) / float(size)
        assert float(errors.absolute[index]) == float(abs(difference))
        assert float(errors.ulp_size[index]) == float(size)
        assert bool(errors.finite[index])
        order = round(Fraction(y) / size) * size
        expected = _ordinal(Fraction(g), fmt) - _ordinal(order, fmt)
        assert int(steps(values([g], fmt), fast([y]), fmt)) == expected


def _ordinal(value: Fraction, fmt: Format) -> int:
    """Count values from 0 up to one of the format's (or just beyond) in closed form."""
    size = slow_ulp(value, fmt.name)
    in_binade = int(abs(value) / size)
    octaves = int(size / slow_quantum(fmt.name)).bit_length() - 1
    return (in_binade + octaves * 2 ** (fmt.precision - 1)) * (1 if value >= 0 else -1)


@pytest.mark.parametrize("name", strategies.ALL)
@given(data=st.data())
def test_error_is_that_of_rational_arithmetic_when_the_exact_value_is_in_mpmath(
    name: str, data: st.DataObject
) -> None:
    fmt = FORMATS[name]
    exact = data.draw(strategies.rationals_near_boundaries(fmt))
    got = data.draw(strategies.finite_values(fmt))
    errors = measure(values([got], fmt), precise([exact], fmt), fmt)
    expected = as_float(slow_error(got, exact, fmt))
    assert float(errors.ulp[0]) == pytest.approx(expected, rel=2.0**-50, abs=0)
    assert float(errors.ulp_size[0]) == float(slow_ulp(exact, name))


@pytest.mark.parametrize("offset", [-2, -1, 0, 1, 2])
def test_error_of_gelu_in_fp64_agrees_with_golden_values(offset: int) -> None:
    rows = golden("gelu_erf")
    assert len(rows) > 150
    got = [FP64.neighbour(as_float(y), offset) for _, y in rows]
    measured = elements([x for x, _ in rows], got, FP64).errors
    for index, ((x, y), g) in enumerate(zip(rows, got, strict=True)):
        hair = Fraction(1, 10**39)
        if slow_ulp(y * (1 - hair), "fp64") != slow_ulp(y * (1 + hair), "fp64"):
            continue  # 40 digits do not tell on which side of a power of two it lies
        expected = as_float(slow_error(g, y, FP64))
        # Golden values have 40 digits, 24 more than an ULP needs.
        assert float(measured.ulp[index]) == pytest.approx(expected, rel=1e-15, abs=1e-20), x
        assert abs(expected - offset) <= 1 or abs(expected) <= 2 * abs(offset) + 1


@pytest.mark.parametrize(
    ("got", "exact", "inward", "expected"),
    [
        (1.0, 1.0, False, 0.0),
        # One ULP of the binade above is two of the binade below.
        (1 + 2.0**-23, 1.0, False, 1.0),
        (1 + 2.0**-23, 1.0, True, 2.0),
        (1 - 2.0**-24, 1.0, False, -0.5),
        (1 - 2.0**-24, 1.0, True, -1.0),
        (-1 - 2.0**-23, -1.0, False, -1.0),
        (-1 - 2.0**-23, -1.0, True, -2.0),
        # Beside a power of two the flag changes nothing.
        (1.5, 1.5 - 2.0**-24, True, 0.5),
        (1.0, math.nextafter(1.0, 0.0), False, 2.0**-29),
        (1.0, math.nextafter(1.0, 2.0), False, -(2.0**-29)),
        # Subnormal numbers and zero: the smallest subnormal.
        (2.0**-149, 0.0, False, 1.0),
        (0.0, 2.0**-150, False, -0.5),
        (2.0**-126, 2.0**-126, True, 0.0),
        (2.0**-126 - 2.0**-149, 2.0**-126, True, -1.0),
        (2.0**-126 - 2.0**-149, 2.0**-126, False, -1.0),
        (-0.0, 0.0, False, 0.0),
        # Opposite signs.
        (-1.0, 1.0, False, -(2.0**24)),
        (3.4028234663852886e38, 2.0**-149, False, (2.0**128 - 2.0**104) * 2.0**149 - 1.0),
    ],
)
def test_signed_error(got: float, exact: float, inward: bool, expected: float) -> None:
    assert float(one(got, exact, inward=inward).ulp[0]) == expected


@pytest.mark.parametrize(
    ("got", "exact", "fmt", "expected", "finite"),
    [
        (1.0, 1.1, FP32, Class.NONE, True),
        (0.0, 0.0, FP32, Class.NONE, True),
        (-0.0, -0.0, FP32, Class.NONE, True),
        (0.0, 2.0**-151, FP32, Class.NONE, True),
        (-0.0, -(2.0**-150), FP32, Class.NONE, True),
        (NAN, NAN, FP32, Class.NONE, False),
        (INF, INF, FP32, Class.NONE, False),
        (INF, 2.0**128, FP32, Class.NONE, False),
        (NAN, 1.0, FP32, Class.NAN_FOR_NUMBER, False),
        (NAN, 0.0, FP32, Class.NAN_FOR_NUMBER, False),
        (NAN, INF, FP32, Class.NAN_FOR_NUMBER, False),
        (0.0, NAN, FP32, Class.NUMBER_FOR_NAN, False),
        (INF, NAN, FP32, Class.NUMBER_FOR_NAN, False),
        (INF, 1.0, FP32, Class.INFINITY_FOR_FINITE, False),
        (INF, 3.4028234663852886e38, FP32, Class.INFINITY_FOR_FINITE, False),
        (-INF, 1.0, FP32, Class.INFINITY_FOR_FINITE, False),
        (-INF, -1.0, FP64, Class.INFINITY_FOR_FINITE, False),
        (3.4028234663852886e38, INF, FP32, Class.LOST_INFINITY, False),
        (0.0, INF, FP32, Class.LOST_INFINITY, False),
        (-INF, INF, FP32, Class.LOST_INFINITY, False),
        (65504.0, 65520.0, FP16, Class.LOST_INFINITY, False),
        (-1.0, 1.0, FP32, Class.OPPOSITE_SIGN, True),
        (2.0**-149, -1.0, FP32, Class.OPPOSITE_SIGN, True),
        (2.0**-149, -(2.0**-149), FP32, Class.OPPOSITE_SIGN, True),
        (2.0**-149, -(2.0**-151), FP32, Class.NONE, True),
        (0.0, 1.0, FP32, Class.COLLAPSE, True),
        (-0.0, 2.0**-126, FP32, Class.COLLAPSE, True),
        (0.0, -6e-9, FP32, Class.COLLAPSE, True),
        (0.0, 2.0**-127, FP32, Class.FLUSHED_SUBNORMAL, True),
        (-0.0, 2.0**-149, FP32, Class.FLUSHED_SUBNORMAL, True),
        (0.0, 2.0**-126 - 2.0**-149, FP32, Class.FLUSHED_SUBNORMAL, True),
        # Rounds up to the smallest normal number, so that is what collapses.
        (0.0, 2.0**-126 - 2.0**-151, FP32, Class.COLLAPSE, True),
        (0.0, -0.0, FP32, Class.WRONG_ZERO_SIGN, True),
        (-0.0, 2.0**-151, FP32, Class.WRONG_ZERO_SIGN, True),
        (0.0, 2.0**-9, E4M3, Class.FLUSHED_SUBNORMAL, True),
        (0.0, 2.0**-6, E4M3, Class.COLLAPSE, True),
        # e4m3fn has no infinity: what overflows is NaN, and NaN is right.
        (NAN, 500.0, E4M3, Class.NONE, False),
        (448.0, 464.0, E4M3, Class.NONE, True),
        (448.0, 500.0, E4M3, Class.NUMBER_FOR_NAN, False),
        (NAN, 448.0, E4M3, Class.NAN_FOR_NUMBER, False),
        (INF, 61440.0, E5M2, Class.NONE, False),
    ],
)
def test_class_of_a_directed_case(
    got: float, exact: float, fmt: Format, expected: Class, finite: bool
) -> None:
    errors = one(got, exact, fmt) if fmt.bits < 64 else _one_precise(got, exact, fmt)
    assert Class(int(errors.classes[0])) is expected
    assert bool(errors.finite[0]) is finite
    if expected is not Class.NONE:
        assert expected.has_distance is finite


def _one_precise(got: float, exact: float, fmt: Format) -> Errors:
    exact_values = PreciseExact([mpmath.mpf(exact)], [math.copysign(1.0, exact) < 0], fmt)
    return measure(values([got], fmt), exact_values, fmt)


def test_both_forms_of_the_exact_value_give_one_class() -> None:
    numbers = [0.0, -0.0, 1.0, -1.0, 2.0**-149, -(2.0**-126), INF, -INF, NAN]
    for got in numbers:
        for exact in numbers:
            by_fast = one(got, exact, FP32)
            by_mpmath = _one_precise(got, exact, FP32)
            assert torch.equal(by_fast.classes, by_mpmath.classes), (got, exact)
            assert torch.equal(by_fast.finite, by_mpmath.finite), (got, exact)
            if bool(by_fast.finite[0]):
                assert torch.equal(by_fast.ulp, by_mpmath.ulp), (got, exact)


def test_every_class_is_named_and_knows_whether_it_has_a_distance() -> None:
    assert {cls.label: cls.has_distance for cls in Class} == {
        "none": True,
        "nan_for_number": False,
        "number_for_nan": False,
        "infinity_for_finite": False,
        "lost_infinity": False,
        "opposite_sign": True,
        "collapse": True,
        "flushed_subnormal": True,
        "wrong_zero_sign": True,
    }


def test_infinity_is_sized_as_the_next_power_of_two_when_a_finite_value_is_due() -> None:
    # 2^128 from 2^127 (ULP 2^104), and 2^16 from 2^15 (ULP 2^5).
    assert float(one(INF, 2.0**127, FP32).ulp[0]) == 2.0**23
    assert float(one(-INF, 2.0**127, FP32).ulp[0]) == -3 * 2.0**23
    assert float(one(INF, 2.0**15, FP16).ulp[0]) == 2.0**10


def test_error_is_nan_when_the_result_is_nan() -> None:
    errors = measure(values([NAN, 1.0], FP32), fast([1.0, 1.0]), FP32)
    assert math.isnan(float(errors.ulp[0]))
    assert not bool(errors.ulp[0].abs() <= INF)
    assert float(errors.ulp[1]) == 0.0


@pytest.mark.parametrize("name", ["fp8_e4m3fn", "fp8_e5m2"])
def test_steps_count_the_values_between_when_formats_are_short(name: str) -> None:
    fmt = FORMATS[name]
    finite = sorted({fmt.decode(b) for b in range(256) if math.isfinite(fmt.decode(b))})
    for exact in finite[::7]:
        got = values(finite, fmt)
        expected = [finite.index(g) - finite.index(exact) for g in finite]
        assert steps(got, fast([exact] * len(finite)), fmt).tolist() == expected


def test_steps_cross_both_zeros_at_once() -> None:
    quantum = 2.0**-149
    got = values([quantum, -0.0, 0.0, -quantum], FP32)
    assert steps(got, fast([-quantum] * 4), FP32).tolist() == [2, 1, 1, 0]


def test_selection_keeps_all_fields_together() -> None:
    errors = measure(values([1.0, NAN, 2.0], BF16), fast([1.0, 1.0, 1.0]), BF16)
    part = errors.select(torch.tensor([False, True, True]))
    assert len(part) == 2
    assert part.classes.tolist() == [1, 0]
    assert part.finite.tolist() == [False, True]
    assert float(part.ulp[1]) == 2.0**7
    assert part.absolute.tolist()[1] == 1.0
    assert part.ulp_size.tolist() == [2.0**-7] * 2


def test_bf16_exact_value_is_not_rounded_before_it_is_compared() -> None:
    y = 1 + 2.0**-9  # a quarter of an ULP above 1
    assert float(one(1.0, y, BF16).ulp[0]) == -0.25
    assert tensors.to_bits(fast([y]).rounded(BF16), BF16).tolist() == [0x3F80]
