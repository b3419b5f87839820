"""Figures as tables show them."""

from __future__ import annotations

import math


def figure(number: float | None) -> str:
    """Return an error figure with three significant digits; whole numbers up to 9999."""
    if number is None or math.isnan(number):
        return "-"
    if number != 0 and not 1e-3 <= abs(number) < 9999.5:
        return f"{number:.2e}"
    return f"{number:.0f}" if abs(number) >= 100 else f"{number:.3g}"


def short(decimal: str) -> str:
    """Return a decimal string with at most six significant digits, for a narrow column."""
    if "(" in decimal:
        return decimal.partition(" ")[0]
    number = float(decimal)
    if number == 0.0 and decimal.strip("-0.e") != "":
        return decimal[:6] + decimal[decimal.find("e") :]  # below float64: keep the exponent
    return decimal if len(decimal) <= 10 else f"{number:.6g}"
