"""``geglu(gate, up) = f(gate)·up`` (Shazeer, "GLU Variants Improve Transformer", 2020)."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from gelu_verify.bounds import bounded
from gelu_verify.operators.fused import ARGUMENTS

if TYPE_CHECKING:
    from gelu_verify.bounds import Arithmetic, Bounded
    from gelu_verify.operators.fused.base import Shape


class Geglu:
    """A gate times its partner."""

    name = "geglu"
    definition = "f(gate)·up"
    arguments = ARGUMENTS["geglu"]
    rows: str | None = "m"
    smallest: Mapping[str, int] = MappingProxyType({})
    dims: tuple[str, ...] = ("b", "m", "n")
    summed: str | None = None
    casts: tuple[str, ...] = ("activated", "grad_activated")
    has_formula = True

    def shapes(self, dims: Mapping[str, int]) -> tuple[Shape, ...]:
        """Return (M, N) twice; with a batch dimension ``b``, (B, M, N)."""
        rows = (dims["b"], dims["m"]) if "b" in dims else (dims["m"],)
        return (*rows, dims["n"]), (*rows, dims["n"])

    def output_shape(self, shapes: tuple[Shape, ...]) -> Shape:
        """Return the shape of both."""
        return shapes[0]

    def forward(self, inputs: tuple[Tensor, ...], formula: str, arithmetic: Arithmetic) -> Bounded:
        """Return the product."""
        gate, up = (bounded.exactly(part) for part in inputs)
        activated = bounded.activate(gate, formula, arithmetic)
        activated = bounded.cast(activated, "activated", arithmetic)
        return bounded.output(bounded.multiply(activated, up, arithmetic), arithmetic)

    def backward(
        self, dy: Tensor, inputs: tuple[Tensor, ...], formula: str, arithmetic: Arithmetic
    ) -> tuple[Bounded, ...]:
        """Return dgate = dy·up·f'(gate), in any order, and dup = dy·f(gate)."""
        gate, up = (bounded.exactly(part) for part in inputs)
        grad = bounded.exactly(dy)
        activated = bounded.cast(
            bounded.activate(gate, formula, arithmetic), "activated", arithmetic
        )
        dup = bounded.multiply(grad, activated, arithmetic)
        slope = bounded.activate(gate, formula, arithmetic, order=1)
        outer = bounded.multiply(grad, up, arithmetic)
        outer = bounded.cast(outer, "grad_activated", arithmetic)
        dgate = bounded.multiply(outer, slope, arithmetic)
        # dy·f' or up·f' may underflow before the third factor is large.
        least = arithmetic.own.smallest_subnormal
        dgate = dgate.widened(bounded.ARITHMETIC, least * (grad.reach + up.reach))
        return bounded.output(dgate, arithmetic), bounded.output(dup, arithmetic)

    def precise(self, inputs: tuple[Tensor, ...], formula: str, index: Shape) -> Any:
        """Return one element: the oracle's value times up."""
        import mpmath

        from gelu_verify.operators.fused import precisely

        gate, up = (float(part[index]) for part in inputs)
        with mpmath.workprec(precisely.SUM_BITS):
            return precisely.activated(mpmath.mpf(gate), formula) * up

    def identity(self, x: Tensor) -> tuple[Tensor, ...] | None:
        """Return x as one row and up = 1."""
        row = x.reshape(1, -1)
        return row, torch.ones_like(row)


OPERATOR = Geglu()
