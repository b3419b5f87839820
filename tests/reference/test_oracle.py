"""The oracle against golden values, published numbers, MPFR's rounding and Arb."""

from __future__ import annotations

import csv
import math
from pathlib import Path

import gmpy2
import mpmath
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from gelu_verify import formats
from gelu_verify.errors import UsageError
from gelu_verify.reference import arb, mpfr, oracle

GOLDEN = Path(__file__).parents[1] / "data" / "golden_values.csv"
COLUMNS = {
    "gelu_erf": ("erf", 0),
    "gelu_erf_d1": ("erf", 1),
    "gelu_erf_d2": ("erf", 2),
    "gelu_tanh": ("tanh", 0),
    "gelu_tanh_d1": ("tanh", 1),
    "gelu_sigmoid": ("sigmoid", 0),
    "gelu_sigmoid_d1": ("sigmoid", 1),
}
FORMULAS = ("erf", "tanh", "sigmoid")


def _rows() -> list[dict[str, str]]:
    with GOLDEN.open(newline="") as file:
        return list(csv.DictReader(file))


def test_golden_file_is_complete() -> None:
    assert len(_rows()) == 202


@pytest.mark.parametrize("column", COLUMNS)
def test_values_agree_with_golden_ones_to_39_digits(column: str) -> None:
    formula, derivative = COLUMNS[column]
    for row in _rows():
        actual = oracle.value(formula, float.fromhex(row["x_hex"]), derivative=derivative)
        with mpmath.workprec(300):
            expected = mpmath.mpf(row[column])
            # 40 digits are given, so the last one may be off by half: 5e-40 relative at most.
            assert abs(actual - expected) <= abs(expected) * mpmath.mpf("5.01e-40"), row["x"]


@pytest.mark.parametrize(
    ("formula", "derivative", "x", "expected", "digits"),
    [
        ("erf", 0, -5.5, "-1.0444259e-7", 8),
        ("erf", 0, -6.0, "-5.9195259e-9", 8),
        ("erf", 0, -8.0, "-4.9767685e-15", 8),
        ("erf", 0, -13.5, "-1.055539e-40", 7),
        ("tanh", 0, -6.0, "-8.4396467e-11", 8),
        ("erf", 1, -3.7, "-1.46388727e-3", 9),
        ("erf", 1, 3.1719, "1.00751309", 9),
        ("erf", 1, -3.0001, "-1.19425e-2", 6),
    ],
)
def test_published_value(
    formula: str, derivative: int, x: float, expected: str, digits: int
) -> None:
    assert mpmath.almosteq(
        oracle.value(formula, x, derivative=derivative), mpmath.mpf(expected), 10.0 ** (1 - digits)
    )


def test_functions_named_after_what_they_check() -> None:
    assert mpmath.nstr(oracle.gelu(-6.0), 8) == "-5.9195259e-9"
    assert mpmath.nstr(oracle.gelu(-6.0, "tanh"), 8) == "-8.4396467e-11"
    assert mpmath.nstr(oracle.gelu_derivative(3.1719), 9) == "1.00751309"
    assert mpmath.nstr(oracle.gelu_backward(-2.0, 3.1719), 9) == "-2.01502618"


@pytest.mark.parametrize(
    ("formula", "start", "where", "largest"),
    [("tanh", 2.7, 2.69894, 4.73236e-4), ("sigmoid", 2.3, 2.27040, 0.0203349)],
)
@pytest.mark.parametrize("side", [1, -1])
def test_largest_method_error(
    formula: str, start: float, where: float, largest: float, side: int
) -> None:
    def slope(x: mpmath.mpf) -> mpmath.mpf:
        return oracle.gelu_derivative(x, formula) - oracle.gelu_derivative(x)

    x = mpmath.findroot(slope, (side * start, side * (start + 0.01)))
    assert abs(x - side * where) < 1e-5
    difference = abs(oracle.gelu(x, formula) - oracle.gelu(x))
    assert abs(difference - largest) < 1e-6 * largest * 2
    around = [oracle.gelu(side * k / 50, formula) - oracle.gelu(side * k / 50) for k in range(400)]
    assert max(abs(d) for d in around) <= difference


@pytest.mark.parametrize(
    ("formula", "x_min", "y_min"),
    [("erf", "-0.7517916", -0.169971), ("tanh", "-0.7524614", -0.170041)],
)
def test_minimum(formula: str, x_min: str, y_min: float) -> None:
    x, y = oracle.minimum(formula, 500)
    # The design gives the erf minimum as -0.7517916; the number is -0.75179152469...
    assert abs(x - mpmath.mpf(x_min)) < 2e-7
    assert abs(y - y_min) < 1e-6


@pytest.mark.parametrize("formula", FORMULAS)
def test_minimum_is_a_sign_change_of_the_derivative_to_every_digit(formula: str) -> None:
    x, _ = oracle.minimum(formula, 500)
    with mpmath.workprec(600):
        step = mpmath.ldexp(1, -499)
        assert oracle.value(formula, x - step, derivative=1) < 0
        assert oracle.value(formula, x + step, derivative=1) > 0


@pytest.mark.parametrize("formula", FORMULAS)
@pytest.mark.parametrize("derivative", [0, 1, 2])
@pytest.mark.parametrize("x", [-1000.0, -38.5, -0.7517915246935645, -1.4142135623730951, 30.0])
def test_stated_relative_error_holds(formula: str, derivative: int, x: float) -> None:
    lower, upper = arb.enclosure(formula, x, derivative, 400)
    actual = oracle.value(formula, x, derivative=derivative, bits=60)
    with mpmath.workprec(500):
        worst = max(abs(actual - lower), abs(actual - upper))
        assert worst <= mpmath.ldexp(abs(lower), -60)


@pytest.mark.parametrize("formula", FORMULAS)
def test_limits(formula: str) -> None:
    assert [oracle.value(formula, math.inf, derivative=d) for d in (0, 1, 2)] == [mpmath.inf, 1, 0]
    assert [oracle.value(formula, -math.inf, derivative=d) for d in (0, 1, 2)] == [0, 0, 0]
    assert all(mpmath.isnan(oracle.value(formula, math.nan, derivative=d)) for d in (0, 1, 2))
    assert oracle.value(formula, -0.0) == 0
    assert oracle.value(formula, 0.0, derivative=1) == mpmath.mpf(0.5)


@pytest.mark.parametrize("formula", FORMULAS)
@pytest.mark.parametrize("x", [-1.7e308, 1.7e308, -5e-324, 5e-324])
def test_ends_of_the_float64_range_are_evaluated(formula: str, x: float) -> None:
    exact = oracle.gelu(x, formula)
    assert mpmath.sign(exact) == math.copysign(1.0, x)
    assert abs(exact) <= abs(x)


def _mpfr_rounded(formula: str, derivative: int, x: float, scale: float, name: str) -> float:
    """Round with MPFR, which has subnormals and overflow of its own."""
    precision, emin, emax = {
        "fp32": (24, -148, 128),
        "fp16": (11, -23, 16),
        "bf16": (8, -132, 128),
    }[name]
    lower, _ = mpfr.enclosure(formula, x, derivative, 400)
    with gmpy2.context(precision=600):
        _, man, exp, _ = lower._mpf_
        wide = (
            gmpy2.mul_2exp(gmpy2.mpfr(int(man)), int(exp))
            if exp >= 0
            else gmpy2.div_2exp(gmpy2.mpfr(int(man)), int(-exp))
        )
        wide = (wide if lower > 0 else -wide) * gmpy2.mpfr(scale)
    with gmpy2.context(precision=precision, emin=emin, emax=emax, subnormalize=True):
        return float(+wide)


@settings(max_examples=300, deadline=None)
@given(
    x=st.floats(-20, 20, width=32).filter(lambda x: x != 0.0),
    scale=st.floats(-4, 4, width=16).filter(lambda s: s != 0.0),
    derivative=st.sampled_from([0, 1]),
    formula=st.sampled_from(FORMULAS),
    name=st.sampled_from(["fp32", "fp16", "bf16"]),
)
@example(x=-14.25, scale=1.0, derivative=0, formula="erf", name="fp32")
@example(x=-13.875, scale=1.0, derivative=1, formula="erf", name="bf16")
@example(x=-5.75, scale=1.0, derivative=1, formula="erf", name="fp16")
def test_rounded_agrees_with_mpfr(
    x: float, scale: float, derivative: int, formula: str, name: str
) -> None:
    fmt = formats.get(name)
    bits = oracle.rounded(formula, x, fmt, derivative=derivative, scale=scale)
    expected = _mpfr_rounded(formula, derivative, x, scale, name)
    assert (fmt.decode(bits), math.copysign(1, fmt.decode(bits))) == (
        expected,
        math.copysign(1, expected),
    )


@pytest.mark.parametrize("formula", FORMULAS)
def test_signs_of_zero(formula: str) -> None:
    fmt = formats.get("fp32")
    for x, scale, derivative, expected in [
        (-0.0, 1.0, 0, -0.0),
        (0.0, 1.0, 0, 0.0),
        (-100.0, 1.0, 0, -0.0),
        (-100.0, -1.0, 1, 0.0),
        (-math.inf, 1.0, 0, -0.0),
        (-math.inf, 1.0, 1, -0.0),
        (-1.0, 0.0, 1, -0.0),
        (1.0, -0.0, 1, -0.0),
    ]:
        actual = fmt.decode(oracle.rounded(formula, x, fmt, derivative=derivative, scale=scale))
        assert actual == 0.0
        assert math.copysign(1, actual) == math.copysign(1, expected), (x, scale, derivative)


@pytest.mark.parametrize("formula", FORMULAS)
def test_infinities_and_nan(formula: str) -> None:
    fp32, e4m3 = formats.get("fp32"), formats.get("fp8_e4m3fn")
    assert fp32.decode(oracle.rounded(formula, math.inf, fp32)) == math.inf
    assert (
        fp32.decode(oracle.rounded(formula, 2.0, fp32, derivative=1, scale=-math.inf)) == -math.inf
    )
    assert fp32.decode(oracle.rounded(formula, math.inf, fp32, derivative=1, scale=3.0)) == 3.0
    assert fp32.decode(oracle.rounded(formula, math.inf, fp32, derivative=1)) == 1.0
    assert math.isnan(fp32.decode(oracle.rounded(formula, math.nan, fp32)))
    assert math.isnan(fp32.decode(oracle.rounded(formula, 1.0, fp32, scale=math.nan)))
    # 0·∞
    assert math.isnan(
        fp32.decode(oracle.rounded(formula, -math.inf, fp32, derivative=1, scale=math.inf))
    )
    assert math.isnan(e4m3.decode(oracle.rounded(formula, math.inf, e4m3)))


@pytest.mark.parametrize("formula", FORMULAS)
@pytest.mark.parametrize("x", [100.0, 1000.0, 2.0**100])
def test_saturated_side_rounds_ties_the_way_the_exact_value_lies(formula: str, x: float) -> None:
    fmt = formats.get("fp32")
    unit = math.ulp(x) * 2.0**29  # the spacing of fp32
    tie = x + 1.5 * unit
    # GELU(x) lies below x, so it is below the tie, which ties-to-even would round up.
    assert fmt.decode(oracle.rounded(formula, tie, fmt)) == x + unit
    # The derivative lies above 1, so dy·GELU' is above a dy that is a tie.
    assert fmt.decode(oracle.rounded(formula, x, fmt, derivative=1, scale=1 + 2.0**-24)) == (
        1 + 2.0**-23
    )


def test_precision_in_force_does_not_matter() -> None:
    fmt = formats.get("fp64")
    expected = [oracle.rounded("erf", x, fmt) for x in (-6.0, 0.3, 4.0)]
    for precision in (10, 53, 2000):
        with mpmath.workprec(precision):
            assert [oracle.rounded("erf", x, fmt) for x in (-6.0, 0.3, 4.0)] == expected


@pytest.mark.parametrize("call", [("gelu", 0), ("erf", 3)])
def test_wrong_names_are_usage_errors(call: tuple[str, int]) -> None:
    with pytest.raises(UsageError):
        oracle.value(call[0], 1.0, derivative=call[1])
