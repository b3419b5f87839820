"""The tanh and sigmoid forms: x·σ(y), σ(-y) = e^-y/(1 + e^-y)."""

import triton
import triton.language as tl

from .bits import leading_12_bits, negated, power_of_two, with_sign_of
from .exponential import exp_of_minus, one_plus

# Adding and subtracting 1.5·2^(23-k) rounds to a multiple of 2^-k.
TO_2_4 = tl.constexpr(786432.0)
TO_2_5 = tl.constexpr(393216.0)
TO_2_8 = tl.constexpr(49152.0)

TWO_TO_MINUS_64 = tl.constexpr(5.421010862427522e-20)

# 2√(2/π) of 20 fraction bits and 0.044715·2√(2/π), 1.702 of 12 bits, and the rest of each.
TANH_C1_20 = tl.constexpr(1.5957689)
TANH_C1_20_REST = tl.constexpr(1.930779e-07)
TANH_C2 = tl.constexpr(0.0713501)
TANH_C2_REST = tl.constexpr(4.7186163e-06)
SIGMOID_C = tl.constexpr(1.7021484)
SIGMOID_C_REST = tl.constexpr(-0.0001484375)


@triton.jit
def tanh_exponent(a, a_hi):
    """(y_hi, y_lo) of y = 2√(2/π)(a + 0.044715a³), a < 14; y_hi on a grid of 2^-16."""
    a_lo = a - a_hi
    square = a * a
    square_hi = (square + TO_2_4) - TO_2_4
    square_lo = tl.fma(a_lo, a + a_hi, tl.fma(a_hi, a_hi, negated(square_hi)))
    p = tl.fma(square_hi, TANH_C2, TANH_C1_20)
    p_lo = tl.fma(square_lo, TANH_C2, tl.fma(square, TANH_C2_REST, TANH_C1_20_REST))
    p_hi = (p + TO_2_8) - TO_2_8
    p_lo = (p - p_hi) + p_lo
    return a_hi * p_hi, tl.fma(a, p_lo, a_lo * p_hi)


@triton.jit
def sigmoid_exponent(a):
    """(y_hi, y_lo) of y = 1.702a, a < 128; y_hi on a grid of 2^-16."""
    a_hi = (a + TO_2_5) - TO_2_5
    return a_hi * SIGMOID_C, tl.fma(a - a_hi, SIGMOID_C, a * SIGMOID_C_REST)


@triton.jit
def _join(x, a, hi, lo, n):
    """-(hi + lo)·2^-n where x < 0, a - (hi + lo)·2^-n elsewhere; x from 10 on and at NaN.

    hi + lo is rounded before an exact scaling, so a subnormal result is rounded twice, the first
    time far below its last place. From x = 10 on all three formulas round to x.
    """
    scale = power_of_two(64 - n)
    negative = (hi + lo) * scale * TWO_TO_MINUS_64
    scale = scale * TWO_TO_MINUS_64
    first = tl.fma(negated(hi), scale, a)
    second = tl.fma(negated(lo), scale, tl.fma(negated(hi), scale, a - first))
    positive = tl.where(x < 10.0, first + second, x)
    return tl.where(x < 0, negated(negative), positive)


@triton.jit
def _logistic(x, a, y_hi, y_lo):
    """x·σ(±y) with the sign of x: a·e^-y/(1 + e^-y) as high + low."""
    e_hi, e_lo, n = exp_of_minus(y_hi, y_lo)
    scale = power_of_two(64 - n) * TWO_TO_MINUS_64
    d, d_hi, d_lo = one_plus(e_hi, e_lo, scale)
    inverse = 1.0 / d
    f_hi = leading_12_bits((e_hi + e_lo) * inverse)
    f_lo = (tl.fma(negated(f_hi), d_hi, e_hi) + tl.fma(negated(f_hi), d_lo, e_lo)) * inverse
    a_hi = leading_12_bits(a)
    joined = _join(x, a, a_hi * f_hi, tl.fma(a, f_lo, (a - a_hi) * f_hi), n)
    # Below 2^-30 the result is x/2 to 2^-30, and the products above may underflow.
    return with_sign_of(tl.where(a < 9.313225746154785e-10, 0.5 * x, joined), x)


@triton.jit
def gelu_tanh(x):
    """x·σ(2√(2/π)(x + 0.044715x³)) = 0.5x(1 + tanh(√(2/π)(x + 0.044715x³))).

    Error 0.83, 0.82 ULP, among the first subnormal results (at -10.105076, -10.104946).
    """
    a = tl.minimum(tl.abs(x), 10.8)
    y_hi, y_lo = tanh_exponent(a, (a + TO_2_8) - TO_2_8)
    return _logistic(x, a, y_hi, y_lo)


@triton.jit
def gelu_sigmoid(x):
    """x·σ(1.702x). Error 0.80, 0.81 ULP (at -53.92549, -1.4235754)."""
    a = tl.minimum(tl.abs(x), 64.0)
    y_hi, y_lo = sigmoid_exponent(a)
    return _logistic(x, a, y_hi, y_lo)
