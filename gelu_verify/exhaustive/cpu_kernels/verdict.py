"""What explains an error beyond 4 ULP, in the judge's words and order."""

from __future__ import annotations

import math

from gelu_verify.exhaustive import cpu_reference
from gelu_verify.exhaustive.cpu_kernels.columns import FAR_FROM, NEAR, OPEN_LEVEL
from gelu_verify.exhaustive.cpu_reference import SIGMOID, TANH
from gelu_verify.exhaustive.figures import (
    APPROXIMATED,
    CANCELLED,
    COLLAPSED,
    FLUSHED,
    GUARDED,
    OPPOSITE,
    UNCOVERED,
)
from gelu_verify.exhaustive.jit import compiled


@compiled
def one_over_ulp(y, inward):
    """Return 1/ulp(y); inward: y, where a power of two, is not reached from below."""
    size = abs(y)
    mantissa, exponent = math.frexp(size)
    exponent -= 1
    if inward and mantissa == 0.5:
        exponent -= 1
    if size == 0.0 or exponent < -126:
        exponent = -126
    return math.ldexp(1.0, 23 - exponent)


@compiled
def _slack(x, formula, derivative, unit):
    """Return the error that cancellation explains: ``Operator.cancellation`` in units of u."""
    size = abs(x)
    if derivative == 0:
        return max(size * unit, 2.2250738585072014e-308)
    if formula == SIGMOID:
        slope = 2 * 1.702 if 1.702 * size < 39.0 else 0.0
    elif formula == TANH:
        c = math.sqrt(2 / math.pi)
        u = c * (size + 0.044715 * size * size * size)
        slope = c * (1 + 3 * 0.044715 * size * size) if u < 20.0 else 0.0
    else:
        slope = math.exp(-0.5 * size * size) / math.sqrt(2 * math.pi) * (3 + 0.5 * size * size)
    return (1 + size * slope) * unit


@compiled
def _argument_slack(x, y, ulp, formula, unit):
    """Return ``allowances.argument_slack``: what rounding the tail's argument explains."""
    size = abs(x)
    if formula == SIGMOID:
        condition, roundings = 1.702 * size, 2.0
    elif formula == TANH:
        condition = 2.0 * math.sqrt(2 / math.pi) * size * (0.044715 * size * size + 1.0)
        roundings = 7.0
    else:
        condition, roundings = size * size + 1.0, 2.0
    return condition * roundings * unit * abs(y) + 4.0 * ulp


@compiled
def _covered(x, got, y, ulp, formula, derivative, zero_below, unit):
    """Tell whether cancellation covers an error: 1 yes, 0 no, -1 too near to tell.

    As ``allowances.cancellation_ratio`` does, y being the value of ``formula``.
    """
    if derivative == 0 and x < zero_below and got != 0.0:
        slack = _argument_slack(x, y, ulp, formula, unit)
    else:
        slack = _slack(x, formula, derivative, unit)
    ratio = abs(got - y) / slack
    if abs(ratio - 1.0) < NEAR:
        return -1
    return 1 if ratio < 1.0 else 0


@compiled
def level_of(x, got, y, formula, derivative, constants, tanh_table, open_width):
    """Return the set that says which built-in contracts an error beyond 4 ULP holds.

    The first of its reasons: ``allowances.covers`` for the guard, cancellation, and the tanh form
    in place of the formula; ``OPEN_LEVEL`` where one is too near to tell.
    """
    threshold, unit = constants[5], constants[6]
    due = x if derivative == 0 else 1.0
    if (x <= -threshold and got == 0.0) or (x >= threshold and got == due):
        return GUARDED
    ulp = 1.0 / one_over_ulp(y, x < 0.0 or (derivative == 0 and x > 1.0))
    covered = _covered(x, got, y, ulp, formula, derivative, constants[7], unit)
    if covered != 0:
        return CANCELLED if covered == 1 else OPEN_LEVEL
    if formula == TANH:
        return UNCOVERED
    a = abs(x)
    if derivative == 1:
        left = cpu_reference.logistic_slope(a, TANH, tanh_table)
        stand_in = left if x < 0.0 else 1.0 - left
    else:
        left = cpu_reference.logistic_tail(a, TANH, tanh_table)
        stand_in = x * (left if x < 0.0 else 1.0 - left)
    ulp = 1.0 / one_over_ulp(stand_in, x < 0.0 or (derivative == 0 and x > 1.0))
    size = abs(got - stand_in) / ulp
    if abs(size - FAR_FROM) <= open_width:
        return OPEN_LEVEL
    if size < FAR_FROM:
        return APPROXIMATED
    covered = _covered(x, got, stand_in, ulp, TANH, derivative, constants[8], unit)
    if covered != 0:
        return APPROXIMATED if covered == 1 else OPEN_LEVEL
    return UNCOVERED


@compiled
def class_of(got, y):
    """Return the set of the class of an error beyond 4 ULP, 0 for none, -1 if too near to tell."""
    size = abs(y)
    if size < 2.0**-148:
        return -1
    if got == 0.0:
        if abs(size * 2.0**126 - 1.0) < NEAR:
            return -1
        return COLLAPSED if size > 2.0**-126 else FLUSHED
    return OPPOSITE if got * y < 0.0 else 0
