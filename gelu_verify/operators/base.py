"""The record that every operator is: what is computed, and its exact values on a batch."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    import torch

    from gelu_verify.formats import Format
    from gelu_verify.reference.exact import Exact

FORMULAS = ("erf", "tanh", "sigmoid")


def beside(exact: Any, limit: float, outward: bool) -> Any:
    """Return ``exact``, moved by 2^-200 of itself if its 200 bits are just those of ``limit``.

    Far out and next to 0 the functions meet x, x/2, dy and dy/2, which they never equal. Those are
    values or ties of the format: on which side the exact number lies (outward: away from zero)
    decides what it rounds to, and at a power of two its ULP.
    """
    import mpmath

    if limit == 0.0 or not math.isfinite(limit) or exact != limit:
        return exact
    with mpmath.workprec(512):
        return exact * (1 + mpmath.ldexp(1 if outward else -1, -200))


def nearer(x: float) -> float:
    """Return x, or ±1024 in place of a finite x beyond it: far out only the side matters.

    At 1024 every tail is below 2^-2450 (sigmoid: e^-1742; erf, tanh: e^-524288 or less), smaller
    by 2^-350 than the smallest fp64 number over the largest, so 0, x, 1 and dy are as near as they
    are farther out, and round alike; the oracle would need thousands of bits there.
    """
    return math.copysign(min(abs(x), 1024.0), x) if math.isfinite(x) else x


class Operator(Protocol):
    """An exact real function of one or more arguments, applied element by element."""

    name: str
    definition: str
    arguments: tuple[str, ...]
    #: Order of the derivative of GELU that is computed: 0 or 1.
    derivative: int

    def exact(self, inputs: tuple[torch.Tensor, ...], formula: str, fmt: Format) -> Exact:
        """Return exact values of inputs (each (N,), dtype of the format), fast where proven."""

    def precise(self, inputs: tuple[torch.Tensor, ...], formula: str, fmt: Format) -> Exact:
        """Return exact values in mpmath, for any format; about 50 µs an element."""

    def side_of_tie(self, inputs: tuple[torch.Tensor, ...]) -> torch.Tensor:
        """Return on which side of a tie in float64 the exact value lies: 1, -1, or 0 if unknown.

        Next to 0, |x| < 2^-60, float64 holds f(x) = x/2 + x²·f''(0)/2 + ... as x/2, which may lie
        halfway between two subnormals; the second term, f''(0) > 0, says which is nearer.
        float64 (N,).
        """

    def cancellation(self, inputs: tuple[torch.Tensor, ...], formula: str) -> torch.Tensor:
        """Return the slack, in units of u, that cancellation explains; float64 (N,)."""

    def saturated(
        self, inputs: tuple[torch.Tensor, ...], actual: torch.Tensor, threshold: float
    ) -> torch.Tensor:
        """Tell where ``actual`` is what a guard at ``|x| >= threshold`` returns; bool (N,)."""
