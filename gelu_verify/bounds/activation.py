"""GELU, its first and second derivative at any float64, with bounds over intervals.

The fast reference is proven where x has 24 bits. At any float64 x the exponent of its tail,
``w = x²/2`` (erf) or ``w = v`` (tanh, sigmoid: ``v`` as in ``reference.oracle``), is rounded up to
three times more (x², its product, v), and e^-w is off by ``w`` times that: ``_EXPONENT·w`` units of
2^-53 cover it. For x >= 0 the tail is subtracted: f(x) = x + f(-x), f'(x) = 1 - f'(-x).
"""

from __future__ import annotations

import math
from functools import cache

import torch
from torch import Tensor

from gelu_verify.reference import fast

_UNIT = 2.0**-53
_EXPONENT = 4.0
#: Exponents from which a factor of the tail may be subnormal, and what the tail then is, at most.
_UNDERFLOWS, _TINY = 680.0, 1e-290
#: What a result of float64 that underflows may lose.
_LEAST = 2.0**-1073
#: More than the relative error of a derivative, and of its value at a located extreme.
_WIDER = 1.0 + 2.0**-30
#: The errors of a derivative where its terms cancel, over the size of a term.
_CANCELLED = 2.0**-40
_C, _CUBIC, _SLOPE = math.sqrt(2 / math.pi), 0.044715, 1.702
#: Where every derivative of every formula has its extremes (the sigmoid form's reach furthest).
_SEARCHED = 12.0


def value(x: Tensor, formula: str, order: int = 0) -> tuple[Tensor, Tensor]:
    """Return f or f' (order 1) at float64 x, and a bound on the absolute error of what is returned.

    Infinities follow the limits; NaN gives NaN, with a bound of 0.
    """
    function = fast.derivative if order else fast.gelu
    y = function(x.contiguous(), formula)
    w = _exponent(x, formula)
    units = fast.RELATIVE_ERROR_BOUND[formula, order] + _EXPONENT * w
    whole = torch.ones_like(x) if order else x
    tail = torch.where(x < 0, y, whole - y).abs() + 2 * _UNIT * whole.abs() * (x >= 0)
    if order:
        # The derivative has a zero: next to it an error of the argument is not relative.
        tail = tail + _term(x, formula)
    error = _UNIT * (tail * units + 2 * y.abs() * (x >= 0)) + _LEAST
    error = torch.where(w >= _UNDERFLOWS, error + _TINY, error)
    return y, error.nan_to_num(nan=0.0, posinf=0.0)


def steepest(low: Tensor, high: Tensor, formula: str, order: int = 1) -> Tensor:
    """Return the largest ``|f'|`` (order 1) or ``|f''|`` (order 2) over each [low, high], float64.

    f' and f'' are monotone between their extremes, so these and the ends decide.
    """
    largest = torch.maximum(_size(low, formula, order), _size(high, formula, order))
    for place, size in extremes(formula, order):
        inside = (low <= place) & (place <= high)
        largest = torch.where(inside, largest.clamp(min=size), largest)
    # An interval that is not one (from an infinity) has the slope of the steepest point.
    return largest.nan_to_num(nan=1.2)


def second(x: Tensor, formula: str) -> Tensor:
    """Return f'' at float64 x: ``φ(x)(2 - x²)``, or ``2σ'v' + x(σ''v'² + σ'v'')``.

    Error below 2^-40 of the size of its terms: it only enters bounds, widened by more than that.
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
def extremes(formula: str, order: int) -> tuple[tuple[float, float], ...]:
    """Return where f' (order 1) or f'' (order 2) has its extremes, to 1e-7, and at least its size.

    Found on a grid of 2^-10 over ±12, beyond which both only decay, and refined on finer ones.
    """
    at = _first if order == 1 else second
    grid = torch.arange(-_SEARCHED, _SEARCHED, 2.0**-10, dtype=torch.float64)
    steps = at(grid, formula).diff().sign()
    turns = (steps[:-1] * steps[1:] < 0).nonzero().flatten().tolist()
    found = []
    for index in turns:
        low, high = grid[index], grid[index + 2]
        for _ in range(2):
            finer = torch.linspace(float(low), float(high), 1025, dtype=torch.float64)
            best = int((at(finer, formula) * steps[index]).argmax())
            low, high = finer[max(best - 1, 0)], finer[min(best + 1, 1024)]
        place = ((low + high) / 2).reshape(1)
        found.append((float(place), float(_size(place, formula, order))))
    return tuple(found)


def _first(x: Tensor, formula: str) -> Tensor:
    return fast.derivative(x.contiguous(), formula)


def _size(x: Tensor, formula: str, order: int) -> Tensor:
    """Return at least ``|f'|`` or ``|f''|``, with their errors."""
    y = _first(x, formula) if order == 1 else second(x, formula)
    return y.abs() * _WIDER + _CANCELLED * _term(x, formula, order) + _TINY


def _exponent(x: Tensor, formula: str) -> Tensor:
    """Return w with ``tail = O(e^-w)``, clamped where the tail has long been 0."""
    size = x.abs().clamp(max=512.0)
    if formula == "erf":
        return size * size * 0.5
    return 2 * _C * (size + _CUBIC * size**3) if formula == "tanh" else _SLOPE * size


def _term(x: Tensor, formula: str, order: int = 1) -> Tensor:
    """Return at least the largest term of f' (order 1), ``|x|v'·e^-w``, or of f''.

    For erf, ``|x|φ`` and ``(2 + x²)φ``; else f'' has terms up to ``(2v' + |x|v'² + |x|v'')·e^-w``.
    """
    size = x.abs().clamp(max=512.0)
    if formula == "erf":
        slope, bend = torch.ones_like(size), torch.zeros_like(size)
    elif formula == "tanh":
        slope, bend = 2 * _C * (1 + 3 * _CUBIC * size * size), 12 * _C * _CUBIC * size
    else:
        slope, bend = torch.full_like(size, _SLOPE), torch.zeros_like(size)
    decay = (-_exponent(x, formula)).exp()
    if order == 1:
        return size * slope * decay
    factor = 2 + size * size if formula == "erf" else size * slope * slope
    return (2 * slope + factor + size * bend) * decay
