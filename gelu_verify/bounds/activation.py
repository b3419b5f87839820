"""GELU, its first and second derivative at any float64, with bounds over intervals.

The fast reference is proven where x has 24 bits. At any float64 x the exponent of its tail,
``w = x²/2`` (erf) or ``w = v`` (tanh, sigmoid: ``v`` as in ``reference.oracle``), is rounded a few
times more, and e^-w is off by ``w`` times that: ``_EXPONENT·w`` units of 2^-53 cover it.
"""

from __future__ import annotations

import math
from functools import cache

import numpy as np
import torch
from torch import Tensor

from gelu_verify.reference import fast

_UNIT = 2.0**-53
_EXPONENT = 8.0
#: Below every figure that matters, above what underflow of the tail to 0 hides (e^-700).
_TINY = 1e-300
#: More than the rounding errors of the second derivative and of the located extremes.
_WIDER = 1.0 + 2.0**-30
_C, _CUBIC, _SLOPE = math.sqrt(2 / math.pi), 0.044715, 1.702
#: Where every derivative of every formula has its extremes (the sigmoid form's reach furthest).
_SEARCHED = 12.0


def value(x: Tensor, formula: str, order: int = 0) -> tuple[Tensor, Tensor]:
    """Return f or f' (order 1) at float64 x, and a bound on the absolute error of what is returned.

    Infinities follow the limits; NaN gives NaN, with a bound of 0.
    """
    function = fast.derivative if order else fast.gelu
    y = function(x.contiguous(), formula)
    units = fast.RELATIVE_ERROR_BOUND[formula, order] + _EXPONENT * _exponent(x, formula)
    # The derivative has a zero: next to it an error of the argument is not relative to the value.
    size = y.abs() if order == 0 else y.abs() + x.abs().clamp(max=64.0) * _gaussian_size(x, formula)
    error = (size * units * _UNIT + _TINY).nan_to_num(nan=0.0, posinf=0.0)
    return y, error


def steepest(low: Tensor, high: Tensor, formula: str, order: int = 1) -> Tensor:
    """Return the largest ``|f'|`` (order 1) or ``|f''|`` (order 2) over each [low, high], float64.

    f' and f'' are monotone between their extremes, so these and the ends decide.
    """
    at = _first if order == 1 else second
    largest = torch.maximum(at(low, formula).abs(), at(high, formula).abs())
    for place in extremes(formula, order):
        inside = (low <= place) & (place <= high)
        size = abs(float(at(torch.tensor([place], dtype=torch.float64), formula)))
        largest = torch.where(inside, largest.clamp(min=size), largest)
    # An interval that is not one (from an infinity) has the slope of the steepest point.
    return (largest * _WIDER + _TINY).nan_to_num(nan=1.2)


def second(x: Tensor, formula: str) -> Tensor:
    """Return f'' at float64 x: ``φ(x)(2 - x²)``, or ``2σ'v' + x(σ''v'² + σ'v'')``.

    Absolute error below 2^-40: it only enters bounds, widened by more than that.
    """
    x = x.clamp(-64.0, 64.0)
    if formula == "erf":
        return (x * x * -0.5).exp() / math.sqrt(2 * math.pi) * (2 - x * x)
    if formula == "tanh":
        v, slope, bend = (
            2 * _C * (x + _CUBIC * x**3),
            2 * _C * (1 + 3 * _CUBIC * x * x),
            12 * _C * _CUBIC * x,
        )
    else:
        v, slope, bend = _SLOPE * x, torch.full_like(x, _SLOPE), torch.zeros_like(x)
    s = torch.sigmoid(v)
    first = s * torch.sigmoid(-v)
    return 2 * first * slope + x * first * ((1 - 2 * s) * slope * slope + bend)


@cache
def extremes(formula: str, order: int) -> tuple[float, ...]:
    """Return where f' (order 1) or f'' (order 2) has its extremes, to 1e-8.

    Found on a grid of 2^-10 over ±12, beyond which both only decay, and refined by golden section.
    """
    at = _first if order == 1 else second

    def size(x: float) -> float:
        return float(at(torch.tensor([x], dtype=torch.float64), formula))

    grid = np.arange(-_SEARCHED, _SEARCHED, 2.0**-10)
    values = at(torch.from_numpy(grid), formula).numpy()
    steps = np.sign(np.diff(values))
    turns = np.flatnonzero(steps[:-1] * steps[1:] < 0) + 1
    from scipy.optimize import minimize_scalar

    found = []
    for index in turns:
        sign = -1.0 if steps[index - 1] > 0 else 1.0
        bracket = (grid[index - 1], grid[index + 1])
        best = minimize_scalar(
            lambda x, sign=sign: sign * size(x),
            bounds=bracket,
            method="bounded",
            options={"xatol": 1e-9},
        )
        found.append(float(best.x))
    return tuple(found)


def _first(x: Tensor, formula: str) -> Tensor:
    return fast.derivative(x.contiguous(), formula)


def _exponent(x: Tensor, formula: str) -> Tensor:
    """Return w with ``tail = O(e^-w)``, clamped where the tail has long been 0."""
    size = x.abs().clamp(max=64.0)
    if formula == "erf":
        return size * size * 0.5
    return 2 * _C * (size + _CUBIC * size**3) if formula == "tanh" else _SLOPE * size


def _gaussian_size(x: Tensor, formula: str) -> Tensor:
    """Return the size of the term of f' that cancels against the other: ``|v'|·e^-w``, at least."""
    size = x.abs().clamp(max=64.0)
    slope = 2 * _C * (1 + 3 * _CUBIC * size * size) if formula == "tanh" else 2.0
    return slope * (-_exponent(x, formula)).exp()
