"""How far a fused kernel may be from the exact value: derived, term by term, for every element.

:mod:`.arithmetic` says what a kernel computes in; :mod:`.bounded` carries exact values together
with that distance through sums, products, matrix products and functions; :mod:`.activation` has
the function itself, its slopes, and how much they vary over an interval.
"""

from gelu_verify.bounds.arithmetic import Arithmetic
from gelu_verify.bounds.bounded import Bounded, exactly

__all__ = ["Arithmetic", "Bounded", "exactly"]
