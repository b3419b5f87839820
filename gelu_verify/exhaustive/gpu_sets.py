"""Which sets of the figures an element beyond 4 ULP belongs to, in Triton: ``allowances.covers``.

Pure functions of values already loaded. ``constants`` are those of ``gpu_engine``; every number
that float32 does not hold is among them. A verdict within 1e-7 of its limit is left to the judge.
"""

from __future__ import annotations

import triton
import triton.language as tl

from gelu_verify.exhaustive.gpu_reference import slope, tail


@triton.jit
def per_ulp_of(x, y, DERIVATIVE: tl.constexpr):
    """Return 1/ulp(y): ulp(y) = 2^(max(e, -126) - 23), e from the pattern of y, one less where y is
    a power of two that the exact value does not reach (``fast.inward``).
    """
    magnitude = y.to(tl.int64, bitcast=True) & 0x7FFFFFFFFFFFFFFF
    if DERIVATIVE == 1:
        inward = x < 0.0
    else:
        inward = (x < 0.0) | (x > 1.0)
    exponent = ((magnitude - inward.to(tl.int64)) >> 52) - 1023
    exponent = tl.maximum(exponent, -126)
    return ((1023 + 23 - exponent) << 52).to(tl.float64, bitcast=True)


@triton.jit
def _slack(x, constants, FORMULA: tl.constexpr, DERIVATIVE: tl.constexpr):
    """Return the error that cancellation explains: ``Operator.cancellation`` in units of u."""
    size = tl.abs(x)
    unit = tl.load(constants + 6)
    root, cubic = tl.load(constants + 10), tl.load(constants + 11)
    steep, density = tl.load(constants + 12), tl.load(constants + 13)
    if DERIVATIVE == 0:
        result = size * unit
    else:
        if FORMULA == "sigmoid":
            factor = tl.where(size * steep < 39.0, size * 0.0 + 2.0 * steep, 0.0)
        elif FORMULA == "tanh":
            square = size * size
            inside = (square * cubic + 1.0) * size * root < 20.0
            factor = tl.where(inside, (square * cubic * 3.0 + 1.0) * root, 0.0)
        else:
            half = size * size * 0.5
            factor = tl.exp(-half) * density * (half + 3.0)
        result = (size * factor + 1.0) * unit
    return result


@triton.jit
def _argument_slack(x, y, ulp, constants, FORMULA: tl.constexpr):
    """Return ``allowances.argument_slack``: what rounding the tail's argument explains."""
    size = tl.abs(x)
    if FORMULA == "sigmoid":
        condition = size * tl.load(constants + 12) * 2.0
    elif FORMULA == "tanh":
        cubic = size * size * tl.load(constants + 11) + 1.0
        condition = cubic * size * tl.load(constants + 10) * 14.0
    else:
        condition = (size * size + 1.0) * 2.0
    return condition * tl.load(constants + 6) * tl.abs(y) + ulp * 4.0


@triton.jit
def _covered(x, got, y, ulp, below, constants, FORMULA: tl.constexpr, DERIVATIVE: tl.constexpr):
    """Return 1 where cancellation covers an error, 0 where not, -1 if too near to tell.

    As ``allowances.cancellation_ratio`` does, y being the value of the formula.
    """
    slack = _slack(x, constants, FORMULA, DERIVATIVE)
    if DERIVATIVE == 0:
        left = (x < below) & (got != 0.0)
        slack = tl.where(left, _argument_slack(x, y, ulp, constants, FORMULA), slack)
    ratio = tl.abs(got - y) / slack
    code = tl.where(ratio < 1.0, 1, 0)
    return tl.where(tl.abs(ratio - 1.0) < 1e-7, -1, code)


@triton.jit
def level(
    x, got, y, constants, tanh_table, FORMULA: tl.constexpr, DERIVATIVE: tl.constexpr
):  # fmt: skip
    """Return the set, 0 to 3, of the first reason that covers an error beyond 4 ULP; -1 if open."""
    threshold, width = tl.load(constants + 5), tl.load(constants + 9)
    if DERIVATIVE == 1:
        due = x * 0.0 + 1.0
    else:
        due = x
    guarded = ((x <= -threshold) & (got == 0.0)) | ((x >= threshold) & (got == due))
    below = tl.load(constants + 7)
    ulp = 1.0 / per_ulp_of(x, y, DERIVATIVE)
    covered = _covered(x, got, y, ulp, below, constants, FORMULA, DERIVATIVE)
    result = x.to(tl.int32) * 0 + 3
    if FORMULA != "tanh":
        a = tl.abs(x)
        if DERIVATIVE == 1:
            left = slope(a, tanh_table, "tanh", 2)
            stand_in = tl.where(x < 0.0, left, 1.0 - left)
        else:
            left = tail(a, tanh_table, "tanh", 2)
            stand_in = tl.where(x < 0.0, left, 1.0 - left) * x
        per_ulp = per_ulp_of(x, stand_in, DERIVATIVE)
        size = tl.abs(got - stand_in) * per_ulp
        below = tl.load(constants + 8)
        by_tanh = _covered(x, got, stand_in, 1.0 / per_ulp, below, constants, "tanh", DERIVATIVE)
        result = tl.where(by_tanh == 1, 2, tl.where(by_tanh == 0, 3, -1))
        result = tl.where(size < 4.0, 2, result)
        result = tl.where(tl.abs(size - 4.0) <= width, -1, result)
    result = tl.where(covered == 1, 1, tl.where(covered == -1, -1, result))
    return tl.where(guarded, 0, result)


@triton.jit
def class_of(got, y, constants):
    """Return the set, 4 to 6, of the class of an error beyond 4 ULP; 0 for none, -1 if open."""
    size = tl.abs(y)
    lowest, scale = tl.load(constants + 14), tl.load(constants + 15)
    scaled = size * scale
    zero = tl.where(scaled > 1.0, 4, 5)
    zero = tl.where(tl.abs(scaled - 1.0) < 1e-7, -1, zero)
    code = tl.where(got * y < 0.0, 6, 0)
    code = tl.where(got == 0.0, zero, code)
    return tl.where(size < lowest, -1, code)
