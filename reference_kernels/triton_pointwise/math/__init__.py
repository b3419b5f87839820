"""GELU and its derivative on fp32 values that are already loaded: pure functions, no memory.

Method. Each formula is x·σ for a σ whose negative side is e^-y times something tame:

    erf       Φ(-a)  = e^-(a²/2)·S(a)                 S: scaled Mills ratio, by a polynomial
    tanh      σ(-y)  = e^-y/(1 + e^-y)                y = 2√(2/π)(a + 0.044715a³)
    sigmoid   σ(-y)  = e^-y/(1 + e^-y)                y = 1.702a

with a = |x|. Then GELU(-a) = -aσ(-a) has no cancellation, and GELU(a) = a - aσ(-a) has none that
matters. Exponents and factors are pairs high + low. `erf.py` takes exact residuals by fused
multiply-add (`bits.fused`). The others use high parts with few enough bits (12, on a fixed grid)
that their products are exact in fp32, as Cody and Dekker do; there `tl.fma` stands only where one
and two roundings are both fine (Triton's interpreter rounds once from 3.9 on and twice before, a
GPU once). Launches turn other fusion off, so these are the only two arithmetics there are.
`erf_short.py` is for results that are rounded to 16 bits at once.

Errors are quoted in each docstring, in ULP of the exact value. Of `gelu_erf`: the largest at every
fp32 input from 2^-30 on and at a part of those below, both signs, against float64, with the
interpreter's correctly rounded square root; a reciprocal 8 ULP off makes it 0.843. Before Triton
3.9 the interpreter takes `bits.fused` by float64, with the same results. Of the other functions:
the largest seen against float64 in the forms above, the worst again against Arb at 200 bits,
forward at every fp32 input from -1/16 to the zero threshold and 2·10^6 random ones in each of 18
zones of x, backward at 10^6 in each, dy in [1, 2]; first with one rounding a `tl.fma`, then with
two. A division 2 ULP off, as compiled ones may be, does not change them. Coefficients:
`derive_coefficients.py`.
"""

from .bits import with_sign_of
from .erf import gelu_erf, gelu_erf_guarded
from .erf_backward import gelu_erf_backward
from .erf_short import ERF_TOP, gelu_erf_short
from .erf_short_backward import QUARTER_LOG2E, root_of_tail
from .logistic import gelu_sigmoid, gelu_tanh
from .logistic_backward import gelu_sigmoid_backward, gelu_tanh_backward

__all__ = [
    "ERF_TOP",
    "QUARTER_LOG2E",
    "gelu_erf",
    "gelu_erf_backward",
    "gelu_erf_guarded",
    "gelu_erf_short",
    "gelu_sigmoid",
    "gelu_sigmoid_backward",
    "gelu_tanh",
    "gelu_tanh_backward",
    "root_of_tail",
    "with_sign_of",
]
