"""dy·GELU'(x) from GELU'(-|x|), for every formula."""

import triton
import triton.language as tl

from .bits import power_of_two


@triton.jit
def times_derivative(dy, x, k, n):
    """dy·GELU'(x) from GELU'(-|x|) = k·2^-n, with GELU'(|x|) = 1 - GELU'(-|x|).

    The power is applied in three exact steps, the larger part after dy: a large dy brings back
    derivatives far below the smallest subnormal. At -∞ the factor is +0, at NaN it is NaN.
    """
    near = tl.minimum(n, 120)
    far = tl.where(x < 0, n - near, 0)
    half = far >> 1
    k = k * power_of_two(-near)
    factor = tl.where(x < 0, k, tl.where(x >= 0, 1.0 - k, x))
    factor = tl.where(x == float("-inf"), 0.0, factor)
    return dy * factor * power_of_two(-half) * power_of_two(half - far)
