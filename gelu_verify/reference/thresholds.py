"""Where a format's rounded GELU, or its derivative, is known in closed form.

Left of the zero threshold the rounded result is ±0; from the identity threshold on it is x itself
(the derivative: 1). Both are inputs of the format: the outermost ones for which this holds. The
real numbers at which the exact function crosses the rounding boundary lie within one step of them:
in fp32 GELU (``erf``) rounds to -0 below -14.356068..., and the threshold is the largest fp32
number below that.

Why bisection over the ordered inputs is valid, for the three formulas f = x·s(x):

1. f' has one zero, x_min in (-0.76, -0.75), so f falls on (-∞, x_min] from 0, and |f| grows there.
   ``erf``: f'/φ = Φ/φ + x has the derivative 2 + x·Φ/φ > 1 for x < 0 (Mills: -x·Φ(x) < φ(x)).
   Logistic, s = σ(v): f'/s = 1 + x·v'·σ(-v), where |x|·v' and σ(-v) both shrink as x < 0 rises.
   Rounding is monotone, so {x ≤ x_min: f(x) rounds to -0} has no gap and starts at the left end.
2. f' falls on (-∞, -1.5] from 0: f'' has its only negative zero right of -1.5. ``erf``:
   f'' = φ·(2 - x²). Logistic: f'' has the sign of 2 + x·v''/v' - x·v'·tanh(v/2), which at 1.5 is
   negative (-0.24 for ``tanh``, -0.18 for ``sigmoid``) and falls beyond: x·v''/v' rises by at most
   12·0.044715·x = 0.54·x a unit, x·v'·tanh(v/2) by more; f'' is even.
3. s(x) + s(-x) = 1, hence x - f(x) = -f(-x) and f'(x) - 1 = -f'(-x). By 1, the distance from f(x)
   to x shrinks strictly on [0.76, ∞), while half the gap below x never shrinks as x grows: if it is
   at most half the gap at x, it is less at every t > x, so f(t) rounds to t. By 2, f' falls
   towards 1 on [1.5, ∞), so there the inputs whose f' rounds to 1 have no gap either.

Coarse formats may reach 1 before 1.5; from there the search walks down one input at a time.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

from gelu_verify.errors import unknown_name
from gelu_verify.formats import Format
from gelu_verify.reference import oracle

#: From here outwards, on either side, the function is monotone: points 1 to 3 above.
_MONOTONE_BEYOND = (1.0, 1.5)


@cache
def thresholds(formula: str, fmt: Format, derivative: int = 0) -> tuple[float, float]:
    """Return (zero_threshold, identity_threshold) of a formula or its first derivative.

    zero_threshold: the largest x of the format such that RN(f(t)) = ±0 for every t <= x in it.
    identity_threshold: the smallest x such that RN(f(t)) = t (derivative: = 1) for every finite
    t >= x in it. Raises UsageError for an unknown formula or derivative.
    """
    if derivative not in (0, 1):
        raise unknown_name("derivative with thresholds", str(derivative), ("0", "1"))
    inner = fmt.ordinal(fmt.encode(_MONOTONE_BEYOND[derivative]))

    def at(ordinal: int) -> tuple[float, float]:
        x = fmt.decode(fmt.from_ordinal(ordinal))
        return x, fmt.decode(oracle.rounded(formula, x, fmt, derivative=derivative))

    def is_zero(ordinal: int) -> bool:
        return at(-ordinal)[1] == 0.0

    def is_identity(ordinal: int) -> bool:
        x, result = at(ordinal)
        return result == (x if derivative == 0 else 1.0)

    zero = _first(is_zero, inner, fmt.largest_bits)
    identity = _first(is_identity, inner, fmt.largest_bits)
    while identity <= inner and is_identity(identity - 1):
        identity -= 1
    return at(-zero)[0], at(identity)[0]


def _first(holds: Callable[[int], bool], low: int, high: int) -> int:
    """Return the first ordinal in [low, high] from which ``holds`` is true, true at ``high``."""
    while low < high:
        middle = (low + high) // 2
        if holds(middle):
            high = middle
        else:
            low = middle + 1
    return low
