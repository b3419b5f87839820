"""The erf form where the result is rounded to 16 bits at once, in about 25 instructions.

    GELU(x) = max(x, 0) - aΦ(-a), a = |x|
    √Φ(-a) = 2^(-a²·log2(e)/4 + R(a)), R: a polynomial, half the log2 of S(a)

In exact arithmetic R is off by 2^-24·x near 0 and 2^-15 of the value in the tail. Of all 16-bit
inputs the worst result is 0.5003 ULP off in bf16 and 0.506 in fp16.
"""

import triton
import triton.language as tl

from .bits import with_sign_of

QUARTER_LOG2E = tl.constexpr(0.36067376)
#: From here on aΦ(-a) rounds to 0 in bf16.
ERF_TOP = tl.constexpr(13.75)


@triton.jit
def root_of_tail(a):
    """√Φ(-a), 0 <= a <= 13.75. Its square as a last factor is not flushed, as 2^q would be."""
    t = a - 2.0
    r = tl.fma(t, 3.501494e-13, -2.2511302e-11)
    r = tl.fma(r, t, 6.136147e-10)
    r = tl.fma(r, t, -9.108248e-09)
    r = tl.fma(r, t, 7.674005e-08)
    r = tl.fma(r, t, -2.9976135e-07)
    r = tl.fma(r, t, -8.098568e-07)
    r = tl.fma(r, t, 2.0454923e-05)
    r = tl.fma(r, t, -0.00017728933)
    r = tl.fma(r, t, 0.0011866189)
    r = tl.fma(r, t, -0.0071300925)
    r = tl.fma(r, t, 0.04121625)
    r = tl.fma(r, t, -0.26922292)
    r = tl.fma(r, t, -1.2862967)
    return tl.exp2(tl.fma(a * -QUARTER_LOG2E, a, r))


@triton.jit
def gelu_erf_short(x):
    """x·Φ(x), to be rounded to bf16 or fp16."""
    a = tl.minimum(tl.abs(x), ERF_TOP, propagate_nan=tl.PropagateNan.ALL)
    root = root_of_tail(a)
    return with_sign_of(tl.fma(-(a * root), root, tl.maximum(x, 0.0)), x)
