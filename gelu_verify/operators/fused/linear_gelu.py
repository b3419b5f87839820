"""``linear_gelu(x, weight, bias) = f(x·weightᵀ + bias)``, weight (N, K) as in torch's linear."""

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


class LinearGelu:
    """A linear layer and its activation."""

    name = "linear_gelu"
    definition = "f(x·weightᵀ + bias)"
    arguments = ARGUMENTS["linear_gelu"]
    dims: tuple[str, ...] = ("b", "m", "k", "n")
    summed: str | None = "k"
    rows: str | None = "m"
    smallest: Mapping[str, int] = MappingProxyType({})
    casts: tuple[str, ...] = ("pre_activation", "grad_pre_activation")
    has_formula = True

    def shapes(self, dims: Mapping[str, int]) -> tuple[Shape, ...]:
        """Return (M, K), (N, K), (N,); with a batch dimension ``b``, (B, M, K) for x."""
        m, k, n = dims["m"], dims["k"], dims["n"]
        x = (dims["b"], m, k) if "b" in dims else (m, k)
        return x, (n, k), (n,)

    def output_shape(self, shapes: tuple[Shape, ...]) -> Shape:
        """Return (..., M, N)."""
        return (*shapes[0][:-1], shapes[1][0])

    def forward(self, inputs: tuple[Tensor, ...], formula: str, arithmetic: Arithmetic) -> Bounded:
        """Return f of the pre-activation; errors as in :mod:`gelu_verify.bounds.bounded`."""
        sums = bounded.cast(_pre(inputs, arithmetic), "pre_activation", arithmetic)
        return bounded.output(bounded.activate(sums, formula, arithmetic), arithmetic)

    def backward(
        self, dy: Tensor, inputs: tuple[Tensor, ...], formula: str, arithmetic: Arithmetic
    ) -> tuple[Bounded, ...]:
        """Return dx = g·weight, dweight = gᵀ·x, dbias = Σg, with g = dy·f'(pre-activation)."""
        sums = bounded.cast(_pre(inputs, arithmetic), "pre_activation", arithmetic)
        slope = bounded.activate(sums, formula, arithmetic, order=1)
        g = bounded.multiply(bounded.exactly(dy), slope, arithmetic)
        g = bounded.cast(g, "grad_pre_activation", arithmetic)
        x, weight, _ = (bounded.exactly(part) for part in inputs)
        rows = g.map(lambda part: part.flatten(0, -2))
        columns = rows.map(lambda part: part.t())
        x_rows = x.map(lambda part: part.flatten(0, -2))
        dx = bounded.matmul(rows, weight, arithmetic)
        dx = dx.map(lambda part: part.reshape(inputs[0].shape))
        dweight = bounded.matmul(columns, x_rows, arithmetic)
        dbias = bounded.total(rows, 0, arithmetic, keepdim=False)
        return tuple(bounded.output(part, arithmetic) for part in (dx, dweight, dbias))

    def precise(self, inputs: tuple[Tensor, ...], formula: str, index: Shape) -> Any:
        """Return one element: the sum exact, then the oracle."""
        from gelu_verify.operators.fused import precisely

        x, weight, bias = inputs
        row = precisely.numbers(x[index[:-1]])
        column = precisely.numbers(weight[index[-1]])
        total = precisely.dot([*row, float(bias[index[-1]])], [*column, 1.0])
        return precisely.activated(total, formula)

    def product(self, left: Tensor, right: Tensor) -> tuple[Tensor, ...]:
        """Return the matrices and bias = 0."""
        return left, right, left.new_zeros(right.shape[0])

    def identity(self, x: Tensor) -> tuple[Tensor, ...] | None:
        """Return rows of at most 256 of x, weight = I and bias = 0; zeros fill the last row."""
        width = min(x.numel(), 256)
        rows = -(-x.numel() // width)
        padded = torch.zeros(rows * width, dtype=x.dtype, device=x.device)
        padded[: x.numel()] = x
        eye = torch.eye(width, dtype=torch.float32, device=x.device).to(x.dtype)
        return padded.reshape(rows, width), eye, padded.new_zeros(width)


def _pre(inputs: tuple[Tensor, ...], arithmetic: Arithmetic) -> Bounded:
    x, weight, bias = (bounded.exactly(part) for part in inputs)
    return bounded.matmul(x, weight.map(lambda part: part.t()), arithmetic, start=bias)


OPERATOR = LinearGelu()
