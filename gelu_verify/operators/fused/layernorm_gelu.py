"""``layernorm_gelu(x, weight, bias) = f((x - mean)/√(var + 1e-5)·weight + bias)``.

Over the last dimension, with the biased variance. The bound is that of two passes: each centred
element is off by the error δ of the mean, ``c(N)·u·Σ|x|/N``, which a mean far above the spread
makes large. Of ``(c + δ)² - c² = 2cδ + δ²`` the first term vanishes in exact two passes, because
Σc = 0; it is kept, because Welford's updates and merged moments need it (Chan, Golub and LeVeque,
"Algorithms for Computing the Sample Variance", 1983, table 1: N·u·κ, κ = mean/spread). One pass,
``E[x²] - mean²``, has N·u·κ², and is beyond the bound as soon as κ is.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from torch import Tensor

from gelu_verify.bounds import bounded, roots
from gelu_verify.operators.fused import ARGUMENTS

if TYPE_CHECKING:
    from gelu_verify.bounds import Arithmetic, Bounded
    from gelu_verify.operators.fused.base import Shape

EPSILON = "1e-5"


class LayernormGelu:
    """Layer normalisation and its activation."""

    name = "layernorm_gelu"
    definition = "f((x - mean)/√(var + 1e-5)·weight + bias)"
    arguments = ARGUMENTS["layernorm_gelu"]
    rows: str | None = "m"
    smallest: Mapping[str, int] = MappingProxyType({})
    dims: tuple[str, ...] = ("b", "m", "n")
    summed: str | None = "n"
    casts: tuple[str, ...] = ("pre_activation", "grad_pre_activation")
    has_formula = True

    def shapes(self, dims: Mapping[str, int]) -> tuple[Shape, ...]:
        """Return (M, N), (N,), (N,); with a batch dimension ``b``, (B, M, N) for x."""
        rows = (dims["b"], dims["m"]) if "b" in dims else (dims["m"],)
        return (*rows, dims["n"]), (dims["n"],), (dims["n"],)

    def output_shape(self, shapes: tuple[Shape, ...]) -> Shape:
        """Return the shape of x."""
        return shapes[0]

    def forward(self, inputs: tuple[Tensor, ...], formula: str, arithmetic: Arithmetic) -> Bounded:
        """Return f of the scaled and shifted row."""
        normed, _ = _normed(inputs[0], arithmetic)
        sums = _pre(normed, inputs, arithmetic)
        return bounded.output(bounded.activate(sums, formula, arithmetic), arithmetic)

    def backward(
        self, dy: Tensor, inputs: tuple[Tensor, ...], formula: str, arithmetic: Arithmetic
    ) -> tuple[Bounded, ...]:
        """Return dx = (h - mean(h) - n·mean(h·n))/√(var + ε), dweight = Σ g·n, dbias = Σ g.

        g = dy·f'(pre-activation), h = g·weight, n the normalised row; sums over all rows.
        """
        normed, root = _normed(inputs[0], arithmetic)
        slope = bounded.activate(_pre(normed, inputs, arithmetic), formula, arithmetic, order=1)
        g = bounded.multiply(bounded.exactly(dy), slope, arithmetic)
        g = bounded.cast(g, "grad_pre_activation", arithmetic)
        dweight = _over_rows(bounded.multiply(g, normed, arithmetic), arithmetic)
        dbias = _over_rows(g, arithmetic)
        h = bounded.multiply(g, bounded.exactly(inputs[1]), arithmetic)
        level = _mean(h, arithmetic)
        along = _mean(bounded.multiply(h, normed, arithmetic), arithmetic)
        along = bounded.multiply(normed, along, arithmetic)
        rest = bounded.add(bounded.add(h, level, arithmetic, -1.0), along, arithmetic, -1.0)
        # The three may be added in any order.
        rest = rest.widened(bounded.ARITHMETIC, 2 * arithmetic.unit * (level.reach + along.reach))
        dx = bounded.multiply(rest, root, arithmetic)
        return tuple(bounded.output(part, arithmetic) for part in (dx, dweight, dbias))

    def precise(self, inputs: tuple[Tensor, ...], formula: str, index: Shape) -> Any:
        """Return one element: moments without rounding, then the root and the oracle."""
        import mpmath

        from gelu_verify.operators.fused import precisely

        row = precisely.numbers(inputs[0][index[:-1]])
        weight, bias = (float(part[index[-1]]) for part in inputs[1:])
        if not all(mpmath.isfinite(x) for x in row):
            return mpmath.nan
        with mpmath.workprec(precisely.SUM_BITS):
            mean = mpmath.fsum(row) / len(row)
            variance = mpmath.fsum((x - mean) ** 2 for x in row) / len(row)
            root = mpmath.sqrt(variance + mpmath.mpf(EPSILON))
            pre = (row[index[-1]] - mean) / root * weight + bias
        return precisely.activated(pre, formula)

    def identity(self, x: Tensor) -> tuple[Tensor, ...] | None:
        """Return None: x - mean depends on the whole row, and its size is bounded by √N."""
        return None


def _normed(x: Tensor, arithmetic: Arithmetic) -> tuple[Bounded, Bounded]:
    """Return the normalised rows (..., N) and ``1/√(var + ε)`` (..., 1)."""
    row = bounded.exactly(x)
    centred = bounded.add(row, _mean(row, arithmetic), arithmetic, -1.0)
    variance = _mean(bounded.multiply(centred, centred, arithmetic), arithmetic)
    root = roots.reciprocal_root(variance, float(EPSILON), arithmetic)
    return bounded.multiply(centred, root, arithmetic), root


def _mean(a: Bounded, arithmetic: Arithmetic) -> Bounded:
    length = max(a.value.shape[-1], 1)
    return bounded.scaled(bounded.total(a, -1, arithmetic), 1 / length, arithmetic)


def _pre(normed: Bounded, inputs: tuple[Tensor, ...], arithmetic: Arithmetic) -> Bounded:
    weight, bias = (bounded.exactly(part) for part in inputs[1:])
    shifted = bounded.add(bounded.multiply(normed, weight, arithmetic), bias, arithmetic)
    return bounded.cast(shifted, "pre_activation", arithmetic)


def _over_rows(a: Bounded, arithmetic: Arithmetic) -> Bounded:
    rows = a.map(lambda part: part.flatten(0, -2))
    return bounded.total(rows, 0, arithmetic, keepdim=False)


OPERATOR = LayernormGelu()
