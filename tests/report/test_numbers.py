"""Figures as tables show them."""

import math

import pytest

from gelu_verify.report.numbers import figure, short


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (None, "-"), (math.nan, "-"), (math.inf, "inf"), (0.0, "0"), (0.5, "0.5"),
        (0.49999, "0.5"), (1.234567, "1.23"), (99.4, "99.4"), (99.96, "100"), (123.456, "123"),
        (1234.5678, "1235"), (9999.4, "9999"), (12345.6, "1.23e+04"), (8388608.0, "8.39e+06"),
        (0.00012345, "1.23e-04"), (0.0012345, "0.00123"), (-1234.5678, "-1235"),
        (1e300, "1.00e+300"),
    ],
)  # fmt: skip
def test_figure_has_three_digits_when_shown(number, text):
    assert figure(number) == text


@pytest.mark.parametrize(
    ("decimal", "text"),
    [
        ("0.5", "0.5"), ("-0.0", "-0.0"), ("0.0", "0.0"), ("nan", "nan"), ("-inf", "-inf"),
        ("1e-45", "1e-45"), ("-14.3560685", "-14.3561"), ("7.0064923216240854e-46", "7.00649e-46"),
        ("2.4703282292062327e-324", "2.4703e-324"), ("-1.2345678901234567e-400", "-1.234e-400"),
    ],
)  # fmt: skip
def test_decimal_is_short_when_a_column_is_narrow(decimal, text):
    assert short(decimal) == text
