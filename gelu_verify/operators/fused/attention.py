"""``attention(q, k, v) = softmax(q·kᵀ/√d)·v``, all (..., L, D)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from gelu_verify.bounds import Bounded, bounded
from gelu_verify.bounds.softmax import softmax, weighted
from gelu_verify.operators.fused import ARGUMENTS

if TYPE_CHECKING:
    from gelu_verify.bounds import Arithmetic
    from gelu_verify.operators.fused.base import Shape


class Attention:
    """Scaled dot-product attention without a mask."""

    name = "attention"
    definition = "softmax(q·kᵀ/√d)·v"
    arguments = ARGUMENTS["attention"]
    rows: str | None = "h"
    smallest: Mapping[str, int] = MappingProxyType({})
    dims: tuple[str, ...] = ("b", "h", "l", "d")
    summed: str | None = "d"
    casts: tuple[str, ...] = (
        "scores",
        "scaled_scores",
        "probabilities",
        "saved_output",
        "grad_probabilities",
        "grad_scaled_scores",
        "grad_scores",
    )
    has_formula = False

    def shapes(self, dims: Mapping[str, int]) -> tuple[Shape, ...]:
        """Return (H, L, D) three times; with a batch dimension ``b``, (B, H, L, D)."""
        leading = tuple(dims[name] for name in ("b", "h") if name in dims)
        shape = (*leading, dims["l"], dims["d"])
        return shape, shape, shape

    def output_shape(self, shapes: tuple[Shape, ...]) -> Shape:
        """Return (..., L, D), rows of q by columns of v."""
        return (*shapes[0][:-1], shapes[2][-1])

    def forward(self, inputs: tuple[Tensor, ...], formula: str, arithmetic: Arithmetic) -> Bounded:
        """Return the weighted rows of v.

        A row all of whose scores are -inf has no softmax: its elements are 0 and open here, and
        ``undefined`` names them.
        """
        v = bounded.exactly(inputs[2])
        result = weighted(_probabilities(inputs, arithmetic), v, arithmetic)
        masked = _masked(inputs).expand_as(result.value)
        value = torch.where(masked, 0.0, result.value)
        opened = result.widened(bounded.OUTPUT, torch.where(masked, torch.inf, 0.0))
        return bounded.output(Bounded(value, opened.own, opened.slack), arithmetic)

    def undefined(self, inputs: tuple[Tensor, ...]) -> Tensor:
        """Return the rows that have no softmax, as all their scores are -inf."""
        shape = self.output_shape(tuple(tuple(part.shape) for part in inputs))
        return _masked(inputs).expand(shape)

    def backward(
        self, dy: Tensor, inputs: tuple[Tensor, ...], formula: str, arithmetic: Arithmetic
    ) -> tuple[Bounded, ...]:
        """Return dq = ds·k/√d, dk = dsᵀ·q/√d, dv = pᵀ·dy, with ds = p∘(dy·vᵀ - Σ dy∘out)."""
        q, k, v = (bounded.exactly(part) for part in inputs)
        grad = bounded.exactly(dy)
        p = _probabilities(inputs, arithmetic)
        dp = bounded.matmul(grad, v.map(_turned), arithmetic)
        dp = bounded.cast(dp, "grad_probabilities", arithmetic)
        level = bounded.total(bounded.multiply(p, dp, arithmetic), -1, arithmetic)
        if arithmetic.may_cast("saved_output"):
            # Where Σ dy∘out is taken from the result, out was rounded to the format.
            out = weighted(p, v, arithmetic)
            rounding = bounded.half_ulp(out.reach, arithmetic.fmt)
            lost = (grad.value.abs() * rounding).sum(-1, keepdim=True)
            level = level.widened(bounded.CAST, lost)
        ds = bounded.multiply(p, bounded.add(dp, level, arithmetic, -1.0), arithmetic)
        ds = bounded.cast(ds, "grad_scaled_scores", arithmetic, relative=True)
        ds = bounded.scaled(ds, _scale(inputs), arithmetic)
        ds = bounded.cast(ds, "grad_scores", arithmetic, relative=True)
        gradients = (
            bounded.matmul(ds, k, arithmetic),
            bounded.matmul(ds.map(_turned), q, arithmetic),
            bounded.matmul(p.map(_turned), grad, arithmetic),
        )
        return tuple(bounded.output(part, arithmetic) for part in gradients)

    def precise(self, inputs: tuple[Tensor, ...], formula: str, index: Shape) -> Any:
        """Return one element: scores without rounding, then 256 bits beyond the largest."""
        import mpmath

        from gelu_verify.operators.fused import precisely

        q, k, v = inputs
        lead, row, column = index[:-2], index[-2], index[-1]
        query = precisely.numbers(q[lead][row])
        scores = [precisely.dot(query, precisely.numbers(key)) for key in k[lead]]
        values = precisely.numbers(v[lead][:, column])
        with mpmath.workprec(precisely.working_bits(*scores)):
            scaled = [score / mpmath.sqrt(len(query)) for score in scores]
            top = max(scaled)
            weights = [mpmath.exp(score - top) for score in scaled]
            return mpmath.fdot(weights, values) / mpmath.fsum(weights)

    def identity(self, x: Tensor) -> tuple[Tensor, ...] | None:
        """Return None: there is no GELU in it."""
        return None


def _probabilities(inputs: tuple[Tensor, ...], arithmetic: Arithmetic) -> Bounded:
    """Return (..., L, L); the scale may multiply q, k or the scores."""
    q, k = (bounded.exactly(part) for part in inputs[:2])
    scores = bounded.matmul(q, k.map(_turned), arithmetic, more=2)
    scores = bounded.cast(scores, "scores", arithmetic)
    scores = bounded.scaled(scores, _scale(inputs), arithmetic)
    scores = bounded.cast(scores, "scaled_scores", arithmetic)
    # A kernel that divides by the sum at the end rounds numbers that are larger by the sum.
    return bounded.cast(softmax(scores, arithmetic), "probabilities", arithmetic, relative=True)


def _masked(inputs: tuple[Tensor, ...]) -> Tensor:
    """Return which rows have -inf as every score, bool (..., L, 1)."""
    scores = inputs[0].double() @ _turned(inputs[1].double())
    return (scores == -torch.inf).all(-1, keepdim=True) & (scores.shape[-1] > 0)


def _scale(inputs: tuple[Tensor, ...]) -> float:
    return 1 / math.sqrt(max(inputs[0].shape[-1], 1))


def _turned(part: Tensor) -> Tensor:
    return part.transpose(-2, -1)


OPERATOR = Attention()
