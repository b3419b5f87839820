"""Taylor models: a polynomial and a proven error for every block of consecutive fp32 inputs.

On a block with centre c and radius r, all inputs x = c + t with |t| <= r and t exact in float64,

    f(c + t) = hi + t·slope + P(t) + E(t),   P(t) = lo + t·(rest + t·(c2 + ... + c_d·t^(d-2))),

with Arb balls of 128 bits for the Taylor coefficients at c; hi + lo stands for c0, slope + rest for
c1. slope has 36 bits and t at most 15 (it is a multiple of half the spacing of the block, of at
most 2^14 inputs), so slope·t is exact. |E(t)| is at most the sum of

- the Lagrange remainder r^(d+1)·|f^(d+1)(ξ)/(d+1)!|, ξ anywhere in the block: the coefficient of
  the series whose centre is the ball c ± r, which contains it (Taylor models with a ball remainder:
  Makino and Berz 2003; power series of balls: Johansson, "Computing hypergeometric functions
  rigorously", 2016);
- what the coefficients lose when they are rounded to float64, their balls' radii included;
- the rounding errors of the evaluation in :mod:`.sweep` (Higham, "Accuracy and Stability", 5.1).

All sums are of non-negative numbers in float64, then enlarged by 2^-20, which covers their own
roundings. A model whose error is above ``MAX_SLACK`` is refused; the caller halves the block.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any, NamedTuple

from gelu_verify.reference.optional import load

DEGREE = 7
#: Inputs a block, at most: t must have no more than 15 bits.
MAX_BLOCK = 1 << 14
#: Largest error of a model, relative to the exact value, in units of 2^-53.
MAX_SLACK = 1.0 / 64.0
#: Largest change of f over a block, relative to f at the centre.
MAX_CHANGE = 0.25

_PREC = 128
_SLOPE_BITS = 36
_UNIT = 2.0**-53
_ENLARGED = 1.0 + 2.0**-20
#: What a few dozen results below the smallest normal number lose together.
_UNDERFLOW = 2.0**-1068


class Model(NamedTuple):
    """Numbers of one block; ``error`` bounds |E| / |f| on the block, in units of 2^-53."""

    centre: float
    hi: float
    slope: float
    tail: tuple[float, ...]
    error: float


@contextmanager
def arithmetic() -> Iterator[None]:
    """Set python-flint's precision and series length, which are global, and set them back."""
    context = load("flint").ctx
    previous = context.prec, context.cap
    context.prec, context.cap = _PREC, DEGREE + 3
    try:
        yield
    finally:
        context.prec, context.cap = previous


def model(formula: str, order: int, first: float, last: float) -> Model | None:
    """Return the model on [first, last] (ends in either order, one sign), None if it is too wide.

    Call it inside :func:`arithmetic`.
    """
    arb = load("flint").arb
    centre, radius = (first + last) / 2, abs(last - first) / 2
    exact = coefficients(formula, order, arb(centre))
    around = coefficients(formula, order, arb(centre, radius))
    hi = float(exact[0])
    slope = _shortened(float(exact[1]))
    exact[0], exact[1] = exact[0] - hi, exact[1] - slope
    tail = tuple(float(ball) for ball in exact[: DEGREE + 1])
    powers = [radius**k for k in range(DEGREE + 2)]
    lost = sum(_size(b - c) * p for b, c, p in zip(exact, tail, powers, strict=False))
    lost += _size(around[DEGREE + 1]) * powers[DEGREE + 1]
    rest = sum(abs(c) * p for c, p in zip(tail, powers, strict=False))
    # Horner: 2d·u, and two subtractions in sweep of results that P(t) dominates: 2u.
    lost += (2 * DEGREE + 4) * _UNIT * rest + _UNDERFLOW
    change = abs(slope) * radius + rest + lost
    if not change <= MAX_CHANGE * abs(hi):
        return None
    error = lost / (abs(hi) - change) / _UNIT * _ENLARGED
    return Model(centre, hi, slope, tail, error) if error <= MAX_SLACK else None


def coefficients(formula: str, order: int, centre: Any) -> list[Any]:
    """Return balls around the Taylor coefficients 0 to DEGREE + 1 at every point of ``centre``."""
    series = _SERIES[formula](load("flint").arb_series([centre, 1]), centre)
    if order == 0:
        return [series[k] for k in range(DEGREE + 2)]
    return [(k + 1) * series[k + 1] for k in range(DEGREE + 2)]


def _erf(x: Any, centre: Any) -> Any:
    """Return x·erfc(-x/√2)/2 of a power series."""
    return x * ((x * _constants()[0]).erfc() * 0.5)


def _tanh(x: Any, centre: Any) -> Any:
    slope, cubic = _constants()[1:3]
    return _logistic(x, x * (slope + cubic * (x * x)), centre)


def _sigmoid(x: Any, centre: Any) -> Any:
    return _logistic(x, x * _constants()[3], centre)


def _logistic(x: Any, v: Any, centre: Any) -> Any:
    """Return x·σ(v) with E = e^-|v|: 1/(1 + E) right of 0, E/(1 + E) left of it."""
    if centre > 0:
        return x / (1 + (-v).exp())
    decay = v.exp()
    return x * (decay / (1 + decay))


_SERIES = {"erf": _erf, "tanh": _tanh, "sigmoid": _sigmoid}


@cache
def _constants() -> tuple[Any, ...]:
    """Return -1/√2, 2√(2/π), 2√(2/π)·0.044715 and 1.702 as balls."""
    flint = load("flint")
    with flint.ctx.workprec(_PREC):
        slope = (flint.arb(8) / flint.arb.pi()).sqrt()
        cubic = slope * flint.arb(flint.fmpq(44715, 1000000))
        return -1 / flint.arb(2).sqrt(), slope, cubic, flint.arb(flint.fmpq(1702, 1000))


def _size(ball: Any) -> float:
    """Return an upper bound of |ball|, up to a rounding."""
    return float(ball.abs_upper())


def _shortened(number: float) -> float:
    """Return ``number`` rounded to 36 bits."""
    fraction, exponent = math.frexp(number)
    return math.ldexp(round(math.ldexp(fraction, _SLOPE_BITS)), exponent - _SLOPE_BITS)
