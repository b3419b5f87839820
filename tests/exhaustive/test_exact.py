"""Exact values within spans: the stated bound holds against the oracle, at and around borders."""

import mpmath
import pytest
import torch

from gelu_verify.exhaustive import exact
from gelu_verify.exhaustive.spans import FP32, Zone, within
from gelu_verify.reference import oracle
from tests.exhaustive.passes import FUNCTIONS, bits, borders

FINITE = (Zone.SERIES, Zone.FULL, Zone.FLAT_HALF)


@pytest.mark.parametrize(("formula", "derivative"), FUNCTIONS)
def test_exact_value_is_within_its_bound_around_every_border(formula, derivative):
    checked = 0
    for border in borders(formula, derivative):
        for span in within(formula, derivative, max(border - 2, 0), border + 2):
            if span.zone not in FINITE:
                continue
            patterns = bits(span.start, span.stop)
            x = patterns.view(torch.float32).double()
            high, bound = exact.of_block(span, x, formula, derivative)
            for value, number in zip(x.tolist(), high.tolist(), strict=True):
                true = oracle.value(formula, value, derivative=derivative, bits=200)
                if true == 0:
                    assert number == 0
                    continue
                with mpmath.workprec(200):
                    assert abs(mpmath.mpf(number) / true - 1) <= bound, (span, value)
                checked += 1
    assert checked > 20


@pytest.mark.parametrize("formula", ["erf", "tanh", "sigmoid"])
def test_series_is_that_of_the_formula(formula):
    c2, c4 = exact.series(formula)
    # f(x) = x/2 + c2·x² + c4·x⁴ + O(x⁶), by a Taylor expansion of mpmath's own.
    with mpmath.workdps(60):
        forms = {
            "erf": lambda x: x * mpmath.ncdf(x),
            "tanh": lambda x: (
                x
                / 2
                * (
                    1
                    + mpmath.tanh(mpmath.sqrt(2 / mpmath.pi) * (x + mpmath.mpf("0.044715") * x**3))
                )
            ),
            "sigmoid": lambda x: x / (1 + mpmath.exp(-mpmath.mpf("1.702") * x)),
        }
        terms = mpmath.taylor(forms[formula], 0, 4)
        assert abs(c2 / terms[2] - 1) < 2**-52
        assert abs(c4 / terms[4] - 1) < 2**-52


def test_zero_keeps_its_sign():
    for pattern, sign in ((0, 1.0), (FP32.sign_bit, -1.0)):
        (span,) = within("erf", 0, pattern, pattern + 1)
        x = bits(pattern, pattern + 1).view(torch.float32).double()
        high, _ = exact.of_block(span, x, "erf", 0)
        assert float(torch.copysign(torch.ones(1), high.float())[0]) == sign
