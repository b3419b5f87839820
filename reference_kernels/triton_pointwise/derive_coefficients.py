"""Derive, or check, every constant of `math.py` with mpmath.

    python -m reference_kernels.triton_pointwise.derive_coefficients

Each polynomial is a weighted least-squares fit on Chebyshev nodes, which comes within a fraction
of a bit of the minimax one. Its coefficients are rounded to fp32 one at a time, lowest degree
first, and the rest are fitted again after each, so that the rounding of one is repaired by the
next. The error printed is that of the rounded polynomial on a dense grid at 60 digits, relative to
the whole quantity it is part of. The last line says whether `math.py` holds the same numbers.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import mpmath as mp
import numpy as np

mp.mp.dps = 60

Real = Callable[[mp.mpf], mp.mpf]

C1 = 2 * mp.sqrt(2 / mp.pi)
C2 = C1 * mp.mpf("0.044715")
C_SIGMOID = mp.mpf("1.702")


def fp32(value: mp.mpf) -> mp.mpf:
    """Round to the nearest fp32 number (normal range)."""
    return to_bits(value, 24)


def to_bits(value: mp.mpf, bits: int) -> mp.mpf:
    """Round to `bits` significant bits."""
    mantissa, exponent = mp.frexp(value)
    return mp.ldexp(mp.nint(mp.ldexp(mantissa, bits)), int(exponent) - bits)


def mills(a: mp.mpf) -> mp.mpf:
    """S(a) = exp(a²/2)·erfc(a/√2)/2, the normal tail without its exponential."""
    return mp.exp(a * a / 2) * mp.erfc(a / mp.sqrt(2)) / 2


def fit_fp32(
    target: Real, weight: Real, degree: int, low: float, high: float
) -> tuple[list[mp.mpf], mp.mpf]:
    """fp32 coefficients, lowest degree first, and the largest weighted error on [low, high]."""
    middle, half = (mp.mpf(low) + mp.mpf(high)) / 2, (mp.mpf(high) - mp.mpf(low)) / 2
    nodes = [middle + half * mp.cos(mp.pi * (2 * i + 1) / 400) for i in range(200)]
    weights = np.array([float(weight(t)) for t in nodes])
    powers = np.array([[float(t**power) for power in range(degree + 1)] for t in nodes])
    left = [target(t) for t in nodes]  # what the coefficients still to come have to supply
    fixed: list[mp.mpf] = []
    for power in range(degree + 1):
        right = weights * np.array([float(value) for value in left])
        columns = weights[:, None] * powers[:, power:]
        scale = np.abs(columns).max(axis=0)
        solution = np.linalg.lstsq(columns / scale, right, rcond=None)[0] / scale
        fixed.append(mp.mpf(float(np.float32(solution[0]))))
        left = [value - fixed[-1] * t**power for value, t in zip(left, nodes, strict=True)]
    grid = [middle + half * mp.mpf(i) / 500 for i in range(-500, 501)]
    return fixed, max(abs(weight(t) * (target(t) - mp.polyval(fixed[::-1], t))) for t in grid)


def tanh_exponent(a: mp.mpf) -> mp.mpf:
    """y(a) = 2√(2/π)(a + 0.044715a³), so that GELU is x·σ(y)."""
    return a * (C1 + C2 * a * a)


def sigmoid_exponent(a: mp.mpf) -> mp.mpf:
    """y(a) = 1.702a."""
    return C_SIGMOID * a


def numerator(exponent: Real) -> Real:
    """N(a) = 1 + e^-y - a·y', whose zero is the zero of GELU'(-a)."""
    return lambda a: 1 + mp.exp(-exponent(a)) - a * mp.diff(exponent, a)


def erf_numerator(a: mp.mpf) -> mp.mpf:
    """B(a) = S(a) - a/√(2π), so that GELU'(-a) = exp(-a²/2)·B(a)."""
    return mills(a) - a / mp.sqrt(2 * mp.pi)


def over_root(function: Real, root: mp.mpf) -> Real:
    """function(a)/(root - a), by its slope where 0/0 would lose digits."""

    def quotient(a: mp.mpf) -> mp.mpf:
        if abs(a - root) < mp.mpf(10) ** -25:
            return -mp.diff(function, root)
        return function(a) / (root - a)

    return quotient


def polynomials() -> dict[str, tuple[list[mp.mpf], mp.mpf]]:
    """Every polynomial of math.py, by the name it has there."""
    found = {}

    def scaled(t: mp.mpf) -> mp.mpf:  # P = (a + 2)·S(a)·e^(v - 3/4) at v = a/(a + 2) = t + 1/2
        a = 2 * (0.5 + t) / (0.5 - t)
        return (a + 2) * mills(a) * mp.exp(t - 0.25)

    def twice(function: Real) -> Real:  # Z in P = (1 + Z)/2
        return lambda t: 2 * function(t) - 1

    low, high = (float(a / (a + 2) - 0.5) for a in (1 / 16, 14.5))
    found["MILLS"] = fit_fp32(twice(scaled), lambda t: 0.5 / scaled(t), 12, low, high)

    def exp_rest(r: mp.mpf) -> mp.mpf:  # (e^r - 1 - r)/r², by its series near 0
        return mp.nsum(lambda i: r**i / mp.factorial(i + 2), [0, 40])

    found["EXP"] = fit_fp32(exp_rest, lambda r: r * r * mp.exp(-r), 4, -0.35, 0.35)

    def near_zero(z: mp.mpf) -> mp.mpf:  # erf(a/√2)/(2a) at z = a²
        a = mp.sqrt(z)
        return mp.erf(a / mp.sqrt(2)) / (2 * a) if z else 1 / mp.sqrt(2 * mp.pi)

    found["SMALL"] = fit_fp32(near_zero, lambda z: 2 * mp.sqrt(z), 1, 0, 1 / 256)

    slope = over_root(erf_numerator, roots()["ERF"])

    def derivative(t: mp.mpf) -> mp.mpf:  # C(a)·e^(v/2 - 1/4) at v = a/(a + 3) = t + 1/2
        return slope(3 * (0.5 + t) / (0.5 - t)) * mp.exp(t / 2)

    found["ERF_SLOPE"] = fit_fp32(
        twice(derivative), lambda t: 0.5 / derivative(t), 10, -0.5, 20 / 23 - 0.5
    )
    for name, exponent in (("TANH", tanh_exponent), ("SIGMOID", sigmoid_exponent)):
        root = roots()[name]
        quotient = over_root(numerator(exponent), root)
        leading = to_bits(quotient(root), 12)  # its product with 12 bits of u is exact
        rest = lambda u, q=quotient, r=root, c=leading: q(r + u) - c  # noqa: E731
        weight = lambda u, q=quotient, r=root: 1 / q(r + u)  # noqa: E731
        values, error = fit_fp32(rest, weight, 4, -0.126, 0.126)
        found[f"{name}_SLOPE"] = [leading, *values], error
    return found


def roots() -> dict[str, mp.mpf]:
    """Find the a > 0 with GELU'(-a) = 0, for each formula."""
    return {
        "ERF": mp.findroot(erf_numerator, 0.7518),
        "TANH": mp.findroot(numerator(tanh_exponent), 0.7525),
        "SIGMOID": mp.findroot(numerator(sigmoid_exponent), 0.7512),
    }


def split(value: mp.mpf, bits: int) -> list[mp.mpf]:
    """Split into a high part of `bits` bits and the rest, rounded to fp32."""
    high = to_bits(value, bits)
    return [high, fp32(value - high)]


def constants() -> dict[str, list[mp.mpf]]:
    """Constants that are not polynomials: high and low parts."""
    found = {f"{name}_ROOT": split(root, 24) for name, root in roots().items()}
    high, rest = found.pop("ERF_ROOT")
    found["ERF_ROOT"] = [*split(high, 12), rest]
    found["LN2"] = split(mp.log(2), 15)
    found["LOG2E"] = [fp32(1 / mp.log(2))]
    found["TANH_C1_20"] = [grid := mp.nint(C1 * 2**20) / 2**20, fp32(C1 - grid)]
    found["TANH_C1_12"] = split(C1, 12)
    found["TANH_C2"] = split(C2, 12)
    found["SIGMOID_C"] = split(C_SIGMOID, 12)
    return found


def main() -> int:
    """Print all constants with their error; 1 if math.py lacks one of them."""
    text = (Path(__file__).with_name("math.py")).read_text(encoding="utf-8")
    present = {np.float32(m) for m in re.findall(r"\d+\.\d+(?:e-?\d+)?", text)}
    missing = []
    tables = {name: (values, None) for name, values in constants().items()} | polynomials()
    for name, (values, error) in tables.items():
        print(name, "" if error is None else f"error 2^{float(mp.log(error, 2)):.2f}")
        for value in values:
            print(f"    {np.float32(float(value))!s}")
            if np.abs(np.float32(float(value))) not in present:
                missing.append(name)
    print("math.py lacks: " + ", ".join(sorted(set(missing))) if missing else "math.py agrees")
    return bool(missing)


if __name__ == "__main__":
    raise SystemExit(main())
