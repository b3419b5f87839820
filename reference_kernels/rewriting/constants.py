"""How far a constant in a model may be from the formula's and still be that constant.

A constant c off by a relative δ changes f(x) by δ·|c·∂f/∂c| to first order. That may be half of
what the contract `cancelling` lets a kernel be off, ``max(4 ULP, |x|·2^-24)``, at every x; the
other half is the kernel's. In fp32 this permits the constants rounded to fp32 and 0.70710678 (off
by 1.7e-9), and refuses 0.7071 (9.6e-6); in every format it refuses 0.70 and 1.7.
"""

from __future__ import annotations

import math
from functools import cache

import torch

#: The constants of each formula, in the order in which the functions here take them.
CONSTANTS: dict[str, tuple[float, ...]] = {
    "erf": (math.sqrt(0.5),),
    "tanh": (math.sqrt(2 / math.pi), 0.044715),
    "sigmoid": (1.702,),
}
#: Bits of the significand; what is not here no fused operator takes.
_PRECISION = {torch.float32: 24, torch.bfloat16: 8, torch.float16: 11}
_ALLOWED_ULP, _ARITHMETIC = 4.0, 2.0**-24
#: Where the shares are tried: beyond, every derivative has decayed below the floor of the contract.
_REACH, _STEPS = 12, 64


@cache
def tolerance(formula: str, index: int, dtype: torch.dtype) -> float:
    """Return the largest relative deviation of a constant that a dtype permits, 0 if unknown."""
    if dtype not in _PRECISION:
        return 0.0
    least = math.inf
    for step in range(-_REACH * _STEPS, _REACH * _STEPS + 1):
        x = step / _STEPS
        value, slope = _value(x, formula), abs(_slope(x, formula, index))
        allowed = max(_ALLOWED_ULP * 2.0 ** -_PRECISION[dtype] * abs(value), abs(x) * _ARITHMETIC)
        if slope > 0:
            least = min(least, allowed / 2 / slope)
    return least


def deviation(formula: str, found: tuple[float, ...]) -> tuple[float, ...]:
    """Return the relative deviation of each constant; NaN and infinity stay what they are."""
    return tuple(abs(got / right - 1) for got, right in zip(found, CONSTANTS[formula], strict=True))


def refusal(formula: str, found: tuple[float, ...], dtype: torch.dtype) -> str | None:
    """Say which constant is not the formula's, in a clause; None where all are."""
    for index, off in enumerate(deviation(formula, found)):
        limit = tolerance(formula, index, dtype)
        if not (off <= limit):
            right = CONSTANTS[formula][index]
            return (
                f"the constant {found[index]:.10g} is off {right:.10g} of the {formula} formula "
                f"by {off:.2g}, more than {limit:.2g}"
            )
    return None


def _inner(x: float, formula: str) -> float:
    """Return y with f(x) = x·σ(y), for tanh and sigmoid."""
    if formula == "sigmoid":
        return CONSTANTS["sigmoid"][0] * x
    root, cubic = CONSTANTS["tanh"]
    return 2 * root * (x + cubic * x**3)


def _value(x: float, formula: str) -> float:
    if formula == "erf":
        return x * math.erfc(-x * math.sqrt(0.5)) / 2
    return x * _logistic(_inner(x, formula))


def _slope(x: float, formula: str, index: int) -> float:
    """Return c·∂f/∂c: x²φ(x) for erf, x·σ'(y)·c∂y/∂c for the others."""
    if formula == "erf":
        return x * x * math.exp(-x * x / 2) / math.sqrt(2 * math.pi)
    y = _inner(x, formula)
    root, cubic = CONSTANTS["tanh"]
    part = 2 * root * cubic * x**3 if index == 1 else y
    return x * part * _logistic(y) * _logistic(-y)


def _logistic(y: float) -> float:
    return 1 / (1 + math.exp(-y)) if y > -700 else 0.0
