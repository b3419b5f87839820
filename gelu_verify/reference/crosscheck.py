"""Independent evaluations of the truth: MPFR (gmpy2) and Arb balls (python-flint).

The oracle computes in mpmath. Here the same real functions are written a second and a third time,
in other arrangements, on two other libraries; :func:`crosscheck` raises OracleError where the
stated errors of any two do not overlap. Disagreement is an error, never a reason to fall back.
"""

from __future__ import annotations

import math
from typing import Any

import mpmath

from gelu_verify.errors import OracleError
from gelu_verify.reference import arb, mpfr, oracle
from gelu_verify.reference.arb import ball

__all__ = ["ball", "crosscheck", "grid"]


def crosscheck(formula: str, x: float, derivative: int = 0, bits: int = 200) -> Any:
    """Return the oracle's value at a finite ``x`` once MPFR and Arb have confirmed it.

    Each of the three gives an interval of about ``2^-bits`` relative width that contains the exact
    value; all three must overlap. Raises OracleError if any two do not, UnavailableError if gmpy2
    or python-flint is missing.
    """
    if not math.isfinite(x):
        raise OracleError(f"cross-check of {formula}: got x = {x}, expected a finite number.")
    intervals = {
        "mpmath": oracle.enclosure(formula, x, derivative=derivative, bits=bits),
        "MPFR": mpfr.enclosure(formula, x, derivative, bits),
        "Arb": arb.enclosure(formula, x, derivative, bits),
    }
    lowest_upper = min(intervals, key=lambda name: intervals[name][1])
    highest_lower = max(intervals, key=lambda name: intervals[name][0])
    if not intervals[highest_lower][0] <= intervals[lowest_upper][1]:
        raise OracleError(
            f"{formula}, derivative {derivative}, at x = {x!r} ({x.hex()}): got "
            f"{mpmath.nstr(intervals[lowest_upper][1], 25)} at most from {lowest_upper} but "
            f"{mpmath.nstr(intervals[highest_lower][0], 25)} at least from {highest_lower}, "
            f"expected overlap at {bits} bits. Do not trust either until this is explained."
        )
    return oracle.value(formula, x, derivative=derivative, bits=bits)


def grid() -> list[float]:
    """Return the points at which the three are compared, ascending, each with its mirror image.

    Zero and subnormals, powers of two, tails to ±1e3, the zeros of the derivatives and ±√2 with
    both neighbours, and the borders of the closed-form zones.
    """
    marks = [0.75179152469356446, 0.75246142207101626, 0.75115425544128895, math.sqrt(2.0)]
    marks += [5.34751558303833, 8.212686212430459, 14.35606861114502, 38.580140223782365]
    points = [0.0, 5e-324, 1e-310, 2.0**-149, 3 * 2.0**-149, 2.0**-133, 2.0**-126, 1e-30]
    points += [math.ldexp(1.0, exponent) for exponent in range(-60, 7, 3)]
    points += [0.1 * step for step in range(1, 60)] + [float(n) for n in range(6, 41)]
    points += [60.5, 100.0, 103.97, 300.0, 441.37, 1000.0]
    points += [math.nextafter(mark, towards) for mark in marks for towards in (0.0, mark, 99.0)]
    return sorted({sign * point for point in points for sign in (-1.0, 1.0)})
