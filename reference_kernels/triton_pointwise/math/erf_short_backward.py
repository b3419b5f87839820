"""√Φ(-a) for the derivative of the erf form, where the result is rounded to 16 bits at once.

    √Φ(-a) = 2^(-a²·log2(e)/4 + R(a)), R: a polynomial, half the log2 of S(a)

Next to its zero the derivative is a small difference, so R is more exact there than `erf_short.py`
needs it: off by 2^-24 near 0 and by 2^-15 of the value in the tail.
"""

import triton
import triton.language as tl

QUARTER_LOG2E = tl.constexpr(0.36067376)


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
