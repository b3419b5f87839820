"""The record that every fused operator is: shapes, exact values with their bound, one in mpmath.

The definition is written once, in the algebra of :mod:`gelu_verify.bounds.bounded`; the same lines
give the exact value and what a kernel's result may differ by. ``precise`` is written apart from it,
in mpmath: the second opinion in tests, and the last word on the worst elements of a check.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

if TYPE_CHECKING:
    from torch import Tensor

    from gelu_verify.bounds import Arithmetic, Bounded

Shape = tuple[int, ...]


class FusedOperator(Protocol):
    """An exact real function of tensors, and its vector-Jacobian products."""

    name: str
    definition: str
    arguments: tuple[str, ...]
    #: Names of its dimensions, in the order in which a case writes them.
    dims: tuple[str, ...]
    #: Dimensions that are summed over (K), the ladder of which a precision fingerprint climbs.
    summed: str | None
    #: The dimension of rows that do not depend on each other (a batch), None if there is none.
    rows: str | None
    #: The least size of a dimension below which there is no result, where that is not 0.
    smallest: Mapping[str, int]
    #: Intermediate results that eager mode rounds to the format.
    casts: tuple[str, ...]
    #: Whether the function contains GELU (and so a formula).
    has_formula: bool

    def shapes(self, dims: Mapping[str, int]) -> tuple[Shape, ...]:
        """Return the shape of each argument."""

    def output_shape(self, shapes: tuple[Shape, ...]) -> Shape:
        """Return the shape of the result for given shapes of the arguments."""

    def forward(self, inputs: tuple[Tensor, ...], formula: str, arithmetic: Arithmetic) -> Bounded:
        """Return exact values with their bound, for inputs of the format's dtype."""

    def backward(
        self, dy: Tensor, inputs: tuple[Tensor, ...], formula: str, arithmetic: Arithmetic
    ) -> tuple[Bounded, ...]:
        """Return the exact gradient for each argument, with its bound."""

    def precise(self, inputs: tuple[Tensor, ...], formula: str, index: Shape) -> Any:
        """Return the exact value of one element of the result as an mpmath number."""

    def identity(self, x: Tensor) -> tuple[Tensor, ...] | None:
        """Return arguments that make the operator the activation of x (N,) alone, None if none.

        The result, flattened, is f(x) for each element of x in order.
        """


@runtime_checkable
class Multiplies(Protocol):
    """A fused operator that arguments can reduce to one product of matrices and an activation."""

    def product(self, left: Tensor, right: Tensor) -> tuple[Tensor, ...]:
        """Return arguments with result f(left·rightᵀ), for left (M, K) and right (N, K)."""


@runtime_checkable
class Undefined(Protocol):
    """A fused operator whose function has no value at some elements of some inputs."""

    def undefined(self, inputs: tuple[Tensor, ...]) -> Tensor:
        """Return where the result has no value, bool of its shape: a kernel gives NaN or 0."""
