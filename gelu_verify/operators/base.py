"""The record that every operator is: what is computed, and its exact values on a batch."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    import torch

    from gelu_verify.formats import Format
    from gelu_verify.reference.exact import Exact

FORMULAS = ("erf", "tanh", "sigmoid")

#: The argument that a sweep runs through, by its name in an operator's arguments.
_SWEPT = ("x", "gate")
#: What any other argument is where it does nothing. -0 and not +0: x + -0 is x for -0 as well.
NEUTRAL = {"dy": 1.0, "up": 1.0, "bias": -0.0}


def place(arguments: tuple[str, ...]) -> int:
    """Return the index of the argument that a sweep runs through."""
    return next(index for index, name in enumerate(arguments) if name in _SWEPT)


def at_neutral(arguments: tuple[str, ...], x: torch.Tensor) -> tuple[torch.Tensor, ...]:
    """Return inputs of an operator with every argument but ``x``, of any shape, neutral."""
    import torch

    swept = place(arguments)
    return tuple(
        x
        if index == swept
        else torch.full(x.shape, NEUTRAL[name], dtype=torch.float32, device=x.device).to(x.dtype)
        for index, name in enumerate(arguments)
    )


def is_neutral(arguments: tuple[str, ...], inputs: tuple[torch.Tensor, ...]) -> torch.Tensor:
    """Return where every argument but the swept one is neutral, bool (N,)."""
    import torch

    swept = place(arguments)
    result = torch.ones(inputs[0].shape, dtype=torch.bool, device=inputs[0].device)
    for index, name in enumerate(arguments):
        if index != swept:
            result &= inputs[index].double() == NEUTRAL[name]
    return result


def never_zero(factor: torch.Tensor, argument: torch.Tensor, zero_at: float) -> torch.Tensor:
    """Return a factor that underflowed as the smallest float64 of its sign, not as a zero.

    f and f' are 0 at one finite argument only; elsewhere a product with an infinity is infinite.
    A product of the stand-in, 2^-1074, with a finite number of fp32 is below 2^-900 and rounds to 0
    as the true one does. factor: float64 (N,); argument: of f or f', float64 (N,).
    """
    import torch

    gone = (factor == 0.0) & torch.isfinite(argument) & (argument != zero_at)
    smallest = torch.full_like(factor, 5e-324)
    return torch.where(gone, torch.copysign(smallest, factor), factor)


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
    #: What is rounded to the format on the way by kernels that are made of two operations, or None.
    intermediate: str | None

    def shaped(self, inputs: tuple[torch.Tensor, ...]) -> tuple[torch.Tensor, ...]:
        """Return what a kernel is called with for inputs of one shape, taken element by element."""

    def activated(self, inputs: tuple[torch.Tensor, ...]) -> torch.Tensor:
        """Return the argument of the activation, float64 (N,)."""

    def approximate(self, inputs: tuple[torch.Tensor, ...], formula: str) -> torch.Tensor:
        """Return the value in float64 arithmetic (N,), in fp64 off by some hundred ULP."""

    def exact_at(self, numbers: list[float], formula: str) -> Any:
        """Return the exact value at Python floats, as an mpmath number."""

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

    def reach(
        self, inputs: tuple[torch.Tensor, ...], formula: str, fmt: Format
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Return how far below and above the exact value those lie that it takes when the
        intermediate is rounded to the format; float64 (N,), not negative. (0, 0) without one.
        """

    def underflows(self, inputs: tuple[torch.Tensor, ...], smallest: float) -> torch.Tensor:
        """Return where the result is 0 if arguments below ``smallest`` are flushed; bool (N,)."""

    def cancellation(self, inputs: tuple[torch.Tensor, ...], formula: str) -> torch.Tensor:
        """Return the slack, in units of u, that cancellation explains; float64 (N,)."""

    def saturated(
        self, inputs: tuple[torch.Tensor, ...], actual: torch.Tensor, threshold: float
    ) -> torch.Tensor:
        """Tell where ``actual`` is what a guard at ``|x| >= threshold`` returns; bool (N,)."""
