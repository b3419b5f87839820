"""dy·GELU'(x) of the tanh and sigmoid forms."""

import triton
import triton.language as tl

from .bits import leading_12_bits, negated, power_of_two
from .derivative import times_derivative
from .exponential import exp_of_minus, one_plus
from .logistic import sigmoid_exponent, tanh_exponent

# Adding and subtracting 1.5·2^(23-k) rounds to a multiple of 2^-k.
TO_2_8 = tl.constexpr(49152.0)

# 2√(2/π) of 12 bits, and the rest.
TANH_C1_12 = tl.constexpr(1.5957031)
TANH_C1_12_REST = tl.constexpr(6.59966e-05)

# The a > 0 where GELU'(-a) = 0, in two parts.
TANH_ROOT = tl.constexpr(0.75246143)
TANH_ROOT_REST = tl.constexpr(-1.1339628e-08)
SIGMOID_ROOT = tl.constexpr(0.75115424)
SIGMOID_ROOT_REST = tl.constexpr(1.1495214e-08)


@triton.jit
def _logistic_derivative(e_hi, e_lo, n, m_hi, m_lo):
    """GELU'(-a)·2^n = e·N/(1 + e·2^-n)² with N = m_hi + m_lo = 1 + e^-y - a·y', e = e_hi + e_lo."""
    _, d_hi, d_lo = one_plus(e_hi, e_lo, power_of_two(-tl.minimum(n, 126)))
    square_hi = d_hi * d_hi
    square_lo = d_lo * ((d_hi + d_hi) + d_lo)
    square = square_hi + square_lo
    inverse = 1.0 / square
    d_hi = leading_12_bits(square)
    d_lo = (square_hi - d_hi) + square_lo

    n_hi = leading_12_bits(m_hi + m_lo)
    n_lo = (m_hi - n_hi) + m_lo
    hi = e_hi * n_hi
    lo = tl.fma(e_hi, n_lo, e_lo * (n_hi + n_lo))
    q_hi = leading_12_bits((hi + lo) * inverse)
    remainder = tl.fma(negated(q_hi), d_hi, hi) + tl.fma(negated(q_hi), d_lo, lo)
    return tl.fma(remainder, inverse, q_hi)


@triton.jit
def _numerator(e_hi, e_lo, n, whole, z_lo):
    """(hi, lo) of e^-y + whole - z_lo, where that is not next to its zero."""
    scale = power_of_two(-tl.minimum(n, 126))
    hi = tl.fma(e_hi, scale, whole)
    lost = tl.fma(e_hi, scale, whole - hi)
    return hi, tl.fma(e_lo, scale, lost - z_lo)


@triton.jit
def gelu_tanh_backward(dy, x):
    """dy·GELU'(x) for GELU = x·σ(y), y = 2√(2/π)(x + 0.044715x³).

    Error 2.0, 2.0 ULP (near 0.0021); 1.5 next to the zero.
    """
    a = tl.minimum(tl.abs(x), 13.7)
    a_hi = (a + TO_2_8) - TO_2_8
    y_hi, y_lo = tanh_exponent(a, a_hi)
    e_hi, e_lo, n = exp_of_minus(y_hi, y_lo)

    # a·y' = y + 2w with w = y - 2√(2/π)·a.
    w_hi = tl.fma(a_hi, -TANH_C1_12, y_hi)
    w_lo = y_lo - tl.fma(a - a_hi, TANH_C1_12, a * TANH_C1_12_REST)
    whole = tl.fma(w_hi, -2.0, 1.0 - y_hi)
    m_hi, m_lo = _numerator(e_hi, e_lo, n, whole, tl.fma(w_lo, 2.0, y_lo))

    # Next to the zero: N = (ROOT - a)·(polynomial in a - ROOT), error 2^-26.7.
    u = a - TANH_ROOT
    near = tl.abs(u) < 0.125
    u_hi = leading_12_bits(u)
    u_lo = (u - u_hi) - TANH_ROOT_REST
    q = tl.fma(u, 0.03057845, -0.076183334)
    q = tl.fma(q, u, 0.4004471)
    q = tl.fma(q, u, 0.09991241)
    q = tl.fma(q, u, -0.0002807348)
    m_hi = tl.where(near, negated(u_hi) * 2.4609375, m_hi)
    m_lo = tl.where(near, tl.fma(negated(u_lo), 2.4609375 + q, negated(u_hi) * q), m_lo)
    k = _logistic_derivative(e_hi, e_lo, n, m_hi, m_lo)
    return times_derivative(dy, x, k, n)


@triton.jit
def gelu_sigmoid_backward(dy, x):
    """dy·GELU'(x) for GELU = x·σ(1.702x). Error 2.0, 2.0 ULP (near 0.0054); 1.4 at the zero."""
    a = tl.minimum(tl.abs(x), 121.0)
    y_hi, y_lo = sigmoid_exponent(a)
    e_hi, e_lo, n = exp_of_minus(y_hi, y_lo)
    m_hi, m_lo = _numerator(e_hi, e_lo, n, 1.0 - y_hi, y_lo)

    # Next to the zero: N = (ROOT - a)·(polynomial in a - ROOT), error 2^-26.8.
    u = a - SIGMOID_ROOT
    near = tl.abs(u) < 0.125
    u_hi = leading_12_bits(u)
    u_lo = (u - u_hi) - SIGMOID_ROOT_REST
    q = tl.fma(u, 0.0331836, -0.097550906)
    q = tl.fma(q, u, 0.22882165)
    q = tl.fma(q, u, -0.40332785)
    q = tl.fma(q, u, 0.00016540162)
    m_hi = tl.where(near, negated(u_hi) * 2.1757812, m_hi)
    m_lo = tl.where(near, tl.fma(negated(u_lo), 2.1757812 + q, negated(u_hi) * q), m_lo)
    k = _logistic_derivative(e_hi, e_lo, n, m_hi, m_lo)
    return times_derivative(dy, x, k, n)
