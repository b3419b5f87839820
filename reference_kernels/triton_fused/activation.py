"""GELU and its derivative inside a fused kernel: exact to fp32, or fast where 16 bits are stored.

FAST is for results that are rounded to 16 bits at once; it costs about 15 instructions. Of all
16-bit inputs the worst result is 0.5018 ULP off in bf16 and 0.5188 in fp16; the derivative's 0.5000
and, in fp16 next to its zero, 1.31, elsewhere 0.503. There is no `1 + erf`:

    GELU(x) = max(x, 0) - a·g,  g = σ(-a) of the formula,  a = |x|
    erf:  g = Φ(-a), see `triton_pointwise/math/erf_short.py` and `erf_short_backward.py`
    tanh, sigmoid:  g = e^-y/(1 + e^-y)

The fp32 forms are those of `triton_pointwise/math`.
"""

import triton
import triton.language as tl

from reference_kernels.triton_pointwise import math

INVERSE_ROOT_TWO_PI = tl.constexpr(0.39894228)
TANH_C1 = tl.constexpr(1.5957691)
TANH_C2 = tl.constexpr(0.07135482)
SIGMOID_C = tl.constexpr(1.702)
#: Beyond these, σ(-y) times a rounds to 0 in bf16.
TANH_TOP = tl.constexpr(10.8)
SIGMOID_TOP = tl.constexpr(64.0)


@triton.jit
def _size(x, TOP: tl.constexpr):
    """|x|, at most TOP; NaN stays."""
    return tl.minimum(tl.abs(x), TOP, propagate_nan=tl.PropagateNan.ALL)


@triton.jit
def _logistic_tail(a, FORMULA: tl.constexpr):
    """σ(-y(a)) and a·y'(a) of the tanh and sigmoid forms."""
    if FORMULA == "tanh":
        square = a * a
        y = a * tl.fma(square, TANH_C2, TANH_C1)
        slope = a * tl.fma(square, 3.0 * TANH_C2, TANH_C1)
    else:
        y = a * SIGMOID_C
        slope = y
    e = tl.exp(-y)
    return e / (1.0 + e), slope


@triton.jit
def _fast(x, FORMULA: tl.constexpr):
    if FORMULA == "erf":
        y = math.gelu_erf_short(x)
    else:
        if FORMULA == "tanh":
            a = _size(x, TANH_TOP)
        else:
            a = _size(x, SIGMOID_TOP)
        g, _ = _logistic_tail(a, FORMULA)
        y = math.with_sign_of(tl.fma(-a, g, tl.maximum(x, 0.0)), x)
    return y


@triton.jit
def _fast_derivative(x, FORMULA: tl.constexpr):
    if FORMULA == "erf":
        a = _size(x, math.ERF_TOP)
        root = math.root_of_tail(a)
        density = tl.exp2(a * -math.QUARTER_LOG2E * a)  # the root of φ(a)√(2π)
        left = tl.fma(a * -INVERSE_ROOT_TWO_PI * density, density, root * root)
        left = tl.where(tl.abs(x) > math.ERF_TOP, 0.0, left)
    else:
        if FORMULA == "tanh":
            a = _size(x, TANH_TOP)
        else:
            a = _size(x, SIGMOID_TOP)
        g, slope = _logistic_tail(a, FORMULA)
        left = g * tl.fma(-slope, 1.0 - g, 1.0)
    return tl.where(x < 0, left, 1.0 - left)


@triton.jit
def gelu(x, FORMULA: tl.constexpr, FAST: tl.constexpr):
    """GELU(x) of a formula (erf, tanh, sigmoid) at fp32 x."""
    if FAST:
        y = _fast(x, FORMULA)
    elif FORMULA == "erf":
        y = math.gelu_erf(x)
    elif FORMULA == "tanh":
        y = math.gelu_tanh(x)
    else:
        y = math.gelu_sigmoid(x)
    return y


@triton.jit
def gelu_backward(dy, x, FORMULA: tl.constexpr, FAST: tl.constexpr):
    """dy·GELU'(x) of a formula at fp32 dy and x."""
    if FAST:
        g = dy * _fast_derivative(x, FORMULA)
    elif FORMULA == "erf":
        g = math.gelu_erf_backward(dy, x)
    elif FORMULA == "tanh":
        g = math.gelu_tanh_backward(dy, x)
    else:
        g = math.gelu_sigmoid_backward(dy, x)
    return g
