"""``bias_gelu(x, bias) = f(x + bias)``, bias (N,) along the last dimension."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from torch import Tensor

from gelu_verify.bounds import bounded
from gelu_verify.operators.fused import ARGUMENTS

if TYPE_CHECKING:
    from gelu_verify.bounds import Arithmetic, Bounded
    from gelu_verify.operators.fused.base import Shape


class BiasGelu:
    """The epilogue of a linear layer alone."""

    name = "bias_gelu"
    definition = "f(x + bias)"
    arguments = ARGUMENTS["bias_gelu"]
    rows: str | None = "m"
    smallest: Mapping[str, int] = MappingProxyType({})
    dims: tuple[str, ...] = ("b", "m", "n")
    summed: str | None = None
    casts: tuple[str, ...] = ("pre_activation", "grad_pre_activation")
    has_formula = True

    def shapes(self, dims: Mapping[str, int]) -> tuple[Shape, ...]:
        """Return (M, N), (N,); with a batch dimension ``b``, (B, M, N) for x."""
        rows = (dims["b"], dims["m"]) if "b" in dims else (dims["m"],)
        return (*rows, dims["n"]), (dims["n"],)

    def output_shape(self, shapes: tuple[Shape, ...]) -> Shape:
        """Return the shape of x."""
        return shapes[0]

    def forward(self, inputs: tuple[Tensor, ...], formula: str, arithmetic: Arithmetic) -> Bounded:
        """Return f of the sum."""
        return bounded.output(
            bounded.activate(_sum(inputs, arithmetic), formula, arithmetic), arithmetic
        )

    def backward(
        self, dy: Tensor, inputs: tuple[Tensor, ...], formula: str, arithmetic: Arithmetic
    ) -> tuple[Bounded, ...]:
        """Return dx = dy·f'(x + bias) and dbias, its sum over all rows."""
        slope = bounded.activate(_sum(inputs, arithmetic), formula, arithmetic, order=1)
        dx = bounded.multiply(bounded.exactly(dy), slope, arithmetic)
        summed = bounded.cast(dx, "grad_pre_activation", arithmetic)
        rows = summed.map(lambda part: part.flatten(0, -2))
        dbias = bounded.total(rows, 0, arithmetic, keepdim=False)
        return bounded.output(dx, arithmetic), bounded.output(dbias, arithmetic)

    def precise(self, inputs: tuple[Tensor, ...], formula: str, index: Shape) -> Any:
        """Return one element: the sum exact, then the oracle."""
        from gelu_verify.operators.fused import precisely

        x, bias = inputs
        pair = precisely.numbers(x[index]) + precisely.numbers(bias[index[-1]])
        return precisely.activated(precisely.dot(pair, (1, 1)), formula)

    def identity(self, x: Tensor) -> tuple[Tensor, ...] | None:
        """Return x as one row and bias = -0, with which -0 stays -0."""
        return x.reshape(1, -1), -x.new_zeros(x.numel())


def _sum(inputs: tuple[Tensor, ...], arithmetic: Arithmetic) -> Bounded:
    x, bias = (bounded.exactly(part) for part in inputs)
    return bounded.cast(bounded.add(x, bias, arithmetic), "pre_activation", arithmetic)


OPERATOR = BiasGelu()
