"""Three libraries agree, and the comparison can fail."""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any

import flint
import gmpy2
import mpmath
import pytest

from gelu_verify.errors import OracleError, UnavailableError
from gelu_verify.reference import arb, crosscheck, mpfr, optional, oracle

FORMULAS = ("erf", "tanh", "sigmoid")


@pytest.mark.parametrize("formula", FORMULAS)
@pytest.mark.parametrize("derivative", [0, 1, 2])
def test_three_libraries_agree_on_the_grid(formula: str, derivative: int) -> None:
    points = crosscheck.grid()
    assert len(points) > 300
    for x in points:
        crosscheck.crosscheck(formula, x, derivative)


def test_grid_reaches_where_evaluations_differ() -> None:
    points = crosscheck.grid()
    for x in (-1e3, 1e3, -0.7517915246935645, 2**0.5, -(2**0.5), 5e-324, -(2.0**-149)):
        assert x in points


@pytest.mark.parametrize("formula", FORMULAS)
@pytest.mark.parametrize("derivative", [0, 1, 2])
@pytest.mark.parametrize("library", [mpfr, arb])
def test_enclosures_are_as_narrow_as_asked(
    formula: str, derivative: int, library: ModuleType
) -> None:
    for x in (-1000.0, -0.7517915246935645, -1.4142135623730951, 3.0):
        lower, upper = library.enclosure(formula, x, derivative, 150)
        with mpmath.workprec(400):
            assert 0 <= upper - lower <= mpmath.ldexp(abs(lower), -146)


def test_textbook_forms_agree_at_a_precision_that_survives_their_cancellation() -> None:
    with gmpy2.context(precision=3000):
        for x in (-10.0, -6.0, -2.69894, -0.75, 0.5, 3.0, 9.0):
            wide = gmpy2.mpfr(x)
            u = gmpy2.sqrt(2 / gmpy2.const_pi()) * (wide + gmpy2.mpfr("0.044715") * wide**3)
            for formula, textbook in (
                ("tanh", wide * (1 + gmpy2.tanh(u)) / 2),
                ("erf", wide * (1 + gmpy2.erf(wide / gmpy2.sqrt(gmpy2.mpfr(2)))) / 2),
                ("sigmoid", wide / (1 + gmpy2.exp(-gmpy2.mpfr("1.702") * wide))),
            ):
                lower, upper = oracle.enclosure(formula, x, bits=180)
                digits = gmpy2.digits(textbook, 10, 70)
                with mpmath.workprec(240):
                    number = mpmath.mpf(_decimal(digits))
                    slack = abs(number) * mpmath.mpf(10) ** -68
                    assert lower - slack <= number <= upper + slack, (formula, x)


def _decimal(digits: tuple[str, int, int]) -> str:
    mantissa, exponent, _ = digits
    sign = "-" if mantissa.startswith("-") else ""
    return f"{sign}0.{mantissa.lstrip('-')}e{exponent}"


@pytest.mark.parametrize("formula", FORMULAS)
@pytest.mark.parametrize("derivative", [0, 1, 2])
def test_disagreement_is_an_error(
    formula: str, derivative: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    right = oracle._TERMS[formula]

    def wrong(x: Any, order: int) -> list[Any]:
        return [term * (1 + mpmath.ldexp(1, -150)) for term in right(x, order)]

    monkeypatch.setitem(oracle._TERMS, formula, wrong)
    with pytest.raises(OracleError, match="expected overlap at 200 bits"):
        crosscheck.crosscheck(formula, -2.0, derivative)


def test_float64_constant_for_a_decimal_one_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(oracle, "TANH_CUBIC", 0.044715)
    with pytest.raises(OracleError):
        crosscheck.crosscheck("tanh", -2.0)


def test_infinite_input_is_refused() -> None:
    with pytest.raises(OracleError, match="finite"):
        crosscheck.crosscheck("erf", float("inf"))


@pytest.mark.parametrize("name", ["flint", "gmpy2"])
def test_missing_library_names_the_extra(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, name, None)
    optional.load.cache_clear()
    try:
        with pytest.raises(UnavailableError, match="development extra"):
            optional.load(name)
    finally:
        optional.load.cache_clear()


def test_ball_leaves_the_precision_of_flint_alone() -> None:
    with flint.ctx.workprec(77):
        arb.ball("erf", -3.0, 1, 128)
        assert flint.ctx.prec == 77


@pytest.mark.parametrize("formula", FORMULAS)
@pytest.mark.parametrize("derivative", [0, 1, 2])
def test_ball_loses_little_outside_zeros(formula: str, derivative: int) -> None:
    for x in (-14.3, -6.0, -3.0, -0.3, -1e-30, 1e-30, 0.75, 2.5, 8.0):
        assert arb.ball(formula, x, derivative, 128).rel_accuracy_bits() >= 108
