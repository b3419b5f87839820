"""The exact GELU and its derivatives a third time, as Arb balls (python-flint).

A ball is a midpoint and a radius; it contains the exact value whatever the roundings were.
Source: Johansson, "Arb: efficient arbitrary-precision midpoint-radius interval arithmetic", IEEE
Trans. Computers 66(8), 2017.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import mpmath

from gelu_verify.errors import OracleError
from gelu_verify.reference import oracle
from gelu_verify.reference.optional import load


def ball(formula: str, x: float, derivative: int = 0, prec: int = 128) -> Any:
    """Return an Arb ball (``flint.arb``) that contains the exact value at a finite ``x``.

    Written for speed (``erf``: about 7 µs at 64 bits, 14 at 128), because certificates call it
    millions of times. Its relative accuracy is ``prec`` less the cancellation next to a zero of the
    derivative and about ``3·log2|x|`` bits in the tails.
    """
    flint = load("flint")
    oracle.check_names(formula, derivative)
    context = flint.ctx
    previous = context.prec
    context.prec = prec
    try:
        return _BALLS[formula](flint.arb(x), derivative, _constants(prec))
    finally:
        context.prec = previous


def enclosure(formula: str, x: float, derivative: int = 0, bits: int = 200) -> tuple[Any, Any]:
    """Return (lower, upper) around the exact value from an Arb ball accurate to ``bits`` bits."""
    flint = load("flint")
    precision = bits + 16
    while precision < 100 * bits:
        exact = ball(formula, x, derivative, precision)
        if exact.is_exact() or exact.rel_accuracy_bits() >= bits:
            with flint.ctx.workprec(precision):
                return _from_arb(exact.lower(), precision), _from_arb(exact.upper(), precision)
        precision *= 2
    raise OracleError(
        f"{formula}, derivative {derivative}, at x = {x!r}: got an Arb ball no better than {exact} "
        f"with {precision // 2} bits, expected {bits} accurate bits. Report this input."
    )


def _erf(x: Any, derivative: int, constants: tuple[Any, ...]) -> Any:
    half_root, density_at_0 = constants[0], constants[1]
    if derivative == 2:
        square = x * x
        return density_at_0 * (square * -0.5).exp() * (2 - square)
    probability = (x * half_root).erfc() * 0.5
    if derivative == 0:
        return x * probability
    return probability + x * density_at_0 * (x * x * -0.5).exp()


def _tanh(x: Any, derivative: int, constants: tuple[Any, ...]) -> Any:
    slope, cubic = constants[2], constants[3]
    square = x * x
    v1 = slope + 3 * cubic * square
    return _logistic(x, x * (slope + cubic * square), v1, 6 * cubic * x, derivative)


def _sigmoid(x: Any, derivative: int, constants: tuple[Any, ...]) -> Any:
    slope = constants[4]
    return _logistic(x, x * slope, slope, 0, derivative)


def _logistic(x: Any, v: Any, v1: Any, v2: Any, derivative: int) -> Any:
    """Return x·σ(v) or a derivative of it with one exponential, E = e^-|v|, which cannot overflow.

    The larger of s = σ(v) and c = σ(-v) is 1/(1+E), the smaller E/(1+E).
    """
    right = v > 0
    decay = (-v).exp() if right else v.exp()
    large = 1 / (1 + decay)
    small = decay * large
    if derivative == 0:
        return x * (large if right else small)
    if derivative == 1:
        return large + x * v1 * small * large if right else small * (1 + x * v1 * large)
    hyperbolic = (1 - decay) * large  # tanh(|v|/2)
    return small * large * (2 * v1 + x * (v2 + v1 * v1 * (-hyperbolic if right else hyperbolic)))


_BALLS = {"erf": _erf, "tanh": _tanh, "sigmoid": _sigmoid}


@cache
def _constants(prec: int) -> tuple[Any, ...]:
    """Return -1/√2, 1/√(2π), 2√(2/π), 2√(2/π)·0.044715 and 1.702 as balls of ``prec`` bits."""
    flint = load("flint")
    with flint.ctx.workprec(prec):
        slope = (flint.arb(8) / flint.arb.pi()).sqrt()
        return (
            -1 / flint.arb(2).sqrt(),
            1 / (2 * flint.arb.pi()).sqrt(),
            slope,
            slope * flint.arb(flint.fmpq(44715, 1000000)),
            flint.arb(flint.fmpq(1702, 1000)),
        )


def _from_arb(number: Any, precision: int) -> Any:
    mantissa, exponent = number.man_exp()
    with mpmath.workprec(precision + 64):
        return mpmath.ldexp(int(mantissa), int(exponent))
