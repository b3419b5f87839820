"""Derive, or check, every constant of the modules in `math/` with mpmath.

    python -m reference_kernels.triton_pointwise.derive_coefficients

Each polynomial is a weighted least-squares fit on Chebyshev nodes, which comes within a fraction
of a bit of the minimax one. Its coefficients are rounded to fp32 one at a time, lowest degree
first, and the rest are fitted again after each, so that the rounding of one is repaired by the
next. The error printed is that of the rounded polynomial on a dense grid at 60 digits, relative to
the whole quantity it is part of. The last line says whether `math/` holds the same numbers.
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
BEND, CENTRE, ERF_TOP = 0.859375, 0.625, 14.375  # of erf.py
SHORT_CENTRE, SHORT_TOP = 2.0, 13.75  # of erf_short_backward.py and erf_short.py


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


def flat(t: mp.mpf) -> mp.mpf:
    """P at v = t + CENTRE: S(a)·(2 + BEND·a) = e^(v·P - BEND·v) at v = a/(2 + BEND·a).

    n·ln 2 is taken with ln 2 of 24 bits; what that lacks is proportional to the exponent to 2^-29
    and so is put here.
    """
    v = t + CENTRE
    a = 2 * v / (1 - BEND * v)
    logarithm = mp.log(mills(a) * (2 + BEND * a))
    lost = (mp.log(2) - fp32(mp.log(2))) / mp.log(2) * (a * a / 2 - logarithm)
    return (logarithm + BEND * v + lost) / v


def polynomials() -> dict[str, tuple[list[mp.mpf], mp.mpf]]:
    """Every polynomial of math/."""
    found = {}

    def twice(function: Real) -> Real:  # Z in C = (1 + Z)/2
        return lambda t: 2 * function(t) - 1

    top = ERF_TOP / (2 + BEND * ERF_TOP)
    found["FLAT"] = fit_fp32(flat, lambda t: t + CENTRE, 10, 2.0**-20 - CENTRE, top - CENTRE)

    # The error is relative; fp16 ends near 6, and bf16 has fewer bits to lose.
    found["TWICE_SHORT"] = fit_fp32(
        lambda a: mp.log(mp.ncdf(-a), 2),
        lambda a: mp.ncdf(-a) ** mp.mpf("0.03"),
        10,
        2.0**-20,
        SHORT_TOP,
    )
    # An error of 2^-24 after weighting is one of 2^-24 in Φ near 0, and one of 2^-16 of the value
    # in the tail.
    found["TWICE_SHORT_SLOPE"] = fit_fp32(
        lambda t: mp.log(mills(t + SHORT_CENTRE), 2),
        lambda t: mp.ncdf(-(t + SHORT_CENTRE)) + mp.mpf(2) ** -8,
        13,
        -SHORT_CENTRE,
        SHORT_TOP - SHORT_CENTRE,
    )

    def exp_rest(r: mp.mpf) -> mp.mpf:  # (e^r - 1 - r)/r², by its series near 0
        return mp.nsum(lambda i: r**i / mp.factorial(i + 2), [0, 40])

    for name, reach in (("EXP", 0.35), ("ERF_EXP", 0.38)):
        found[name] = fit_fp32(exp_rest, lambda r: r * r * mp.exp(-r), 4, -reach, reach)

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
    for name in ("SHORT", "SHORT_SLOPE"):
        doubles, error = found.pop(f"TWICE_{name}")
        found[name] = [value / 2 for value in doubles], error
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
    found["ERF_LN2"] = [fp32(mp.log(2))]
    found["ERF_LOG2E"] = [fp32(mp.mpf("1.0006") / mp.log(2))]
    found["LOG2E"] = [fp32(1 / mp.log(2))]
    found["TANH_C1_20"] = [grid := mp.nint(C1 * 2**20) / 2**20, fp32(C1 - grid)]
    found["TANH_C1_12"] = split(C1, 12)
    found["TANH_C2"] = split(C2, 12)
    found["SIGMOID_C"] = split(C_SIGMOID, 12)
    return found


def main() -> int:
    """Print all constants with their error; 1 if math/ lacks one of them."""
    modules = Path(__file__).with_name("math").glob("*.py")
    text = "".join(module.read_text(encoding="utf-8") for module in modules)
    present = {np.float32(m) for m in re.findall(r"\d+\.\d+(?:e-?\d+)?", text)}
    missing = []
    tables = {name: (values, None) for name, values in constants().items()} | polynomials()
    for name, (values, error) in tables.items():
        print(name, "" if error is None else f"error 2^{float(mp.log(error, 2)):.2f}")
        for value in values:
            print(f"    {np.float32(float(value))!s}")
            if np.abs(np.float32(float(value))) not in present:
                missing.append(name)
    print("math/ lacks: " + ", ".join(sorted(set(missing))) if missing else "math/ agrees")
    return bool(missing)


if __name__ == "__main__":
    raise SystemExit(main())
