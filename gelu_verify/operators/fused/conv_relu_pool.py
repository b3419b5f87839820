"""``conv_relu_pool(x, weight, bias)``: 3×3 convolution, padding 1; ReLU; 2×2 maxima, stride 2.

x (N, C, H, W), weight (O, C, 3, 3), bias (O,); result (N, O, H//2, W//2). A direct sum of 9·C
products is assumed: Winograd's and FFT's transforms round more.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor
from torch.nn import functional

from gelu_verify.bounds import Bounded, bounded, selection
from gelu_verify.operators.fused import ARGUMENTS

if TYPE_CHECKING:
    from gelu_verify.bounds import Arithmetic
    from gelu_verify.operators.fused.base import Shape

_TAPS = tuple((i, j) for i in range(3) for j in range(3))


class ConvReluPool:
    """A convolution and what follows it in a vision model."""

    name = "conv_relu_pool"
    definition = "maxpool2x2(relu(conv3x3(x, weight) + bias))"
    arguments = ARGUMENTS["conv_relu_pool"]
    rows: str | None = "n"
    #: A pool needs a window; torch has no convolution of no channels.
    smallest: Mapping[str, int] = MappingProxyType({"c": 1, "h": 2, "w": 2, "o": 1})
    dims: tuple[str, ...] = ("n", "c", "h", "w", "o")
    summed: str | None = "c"
    #: Only the gradient sees it: rounding may decide which element is the largest.
    casts: tuple[str, ...] = ("convolution",)
    has_formula = False

    def shapes(self, dims: Mapping[str, int]) -> tuple[Shape, ...]:
        """Return (N, C, H, W), (O, C, 3, 3), (O,)."""
        n, c, h, w, o = (dims[name] for name in self.dims)
        return (n, c, h, w), (o, c, 3, 3), (o,)

    def output_shape(self, shapes: tuple[Shape, ...]) -> Shape:
        """Return (N, O, H//2, W//2)."""
        n, _, h, w = shapes[0]
        return n, shapes[1][0], h // 2, w // 2

    def forward(self, inputs: tuple[Tensor, ...], formula: str, arithmetic: Arithmetic) -> Bounded:
        """Return the maxima; the only rounding to the format may come before or after them."""
        windows = _convolved(inputs, arithmetic).map(_windows)
        return bounded.output(selection.rectified_maximum(windows), arithmetic)

    def backward(
        self, dy: Tensor, inputs: tuple[Tensor, ...], formula: str, arithmetic: Arithmetic
    ) -> tuple[Bounded, ...]:
        """Return dx, dweight, dbias of the gradient g (N, O, H, W) that the pick lets through."""
        x, weight, _ = inputs
        h, w = x.shape[-2:]
        sums = bounded.cast(_convolved(inputs, arithmetic), "convolution", arithmetic)
        picked = selection.routed(dy.double(), sums.map(_windows))
        g = picked.map(lambda part: _spread(part, h, w))
        columns = g.map(lambda part: part.transpose(0, 1).flatten(1))
        patches = bounded.exactly(_patches(x).transpose(1, 2).flatten(0, 1))
        dweight = bounded.matmul(columns, patches, arithmetic)
        dbias = bounded.total(columns, 1, arithmetic, keepdim=False)
        # dx is the convolution of g with the kernel turned by half a turn.
        turned = weight.double().flip(2, 3).transpose(0, 1).flatten(1)
        dx = bounded.matmul(bounded.exactly(turned), g.map(_patches), arithmetic)
        shaped = (
            dx.map(lambda part: part.reshape(x.shape)),
            dweight.map(lambda part: part.reshape(weight.shape)),
            dbias,
        )
        return tuple(bounded.output(part, arithmetic) for part in shaped)

    def precise(self, inputs: tuple[Tensor, ...], formula: str, index: Shape) -> Any:
        """Return one element: four sums without rounding, and their maximum with 0."""
        import mpmath

        n, o, row, column = index
        corners = [(2 * row + i, 2 * column + j) for i in (0, 1) for j in (0, 1)]
        sums = [_one(inputs, n, o, at) for at in corners]
        if any(mpmath.isnan(total) for total in sums):
            return mpmath.nan
        return max(mpmath.mpf(0), *sums)

    def identity(self, x: Tensor) -> tuple[Tensor, ...] | None:
        """Return None: there is no GELU in it."""
        return None


def _convolved(inputs: tuple[Tensor, ...], arithmetic: Arithmetic) -> Bounded:
    """Return the pre-activations (N, O, H, W)."""
    x, weight, bias = inputs
    flat = bounded.exactly(weight.flatten(1))
    start = bounded.exactly(bias.unsqueeze(-1))
    sums = bounded.matmul(flat, bounded.exactly(_patches(x)), arithmetic, start=start)
    sums = sums.map(lambda part: part.unflatten(-1, x.shape[-2:]))
    if bool(torch.isfinite(weight).all()):
        return sums
    # Whether a kernel multiplies an infinite weight by the padding, which gives NaN, is its choice.
    inside = torch.zeros_like(sums.value, dtype=torch.bool)
    inside[..., 1:-1, 1:-1] = True
    value = torch.where(inside | ~sums.value.isnan(), sums.value, 0.0)
    return Bounded(value, sums.own, sums.slack)


def _patches(x: Tensor) -> Tensor:
    """Return (N, 9·C, H·W): the neighbourhood of each place, zeros beyond the border."""
    return functional.unfold(x.double(), 3, padding=1)


def _windows(part: Tensor) -> Tensor:
    """Return (..., H//2, W//2, 4) of (..., H, W); an odd last row or column is dropped."""
    h, w = part.shape[-2] // 2 * 2, part.shape[-1] // 2 * 2
    cut = part[..., :h, :w].unflatten(-2, (h // 2, 2)).unflatten(-1, (w // 2, 2))
    return cut.transpose(-3, -2).flatten(-2)


def _spread(part: Tensor, h: int, w: int) -> Tensor:
    """Return the inverse of ``_windows``, with 0 where a row or column was dropped."""
    square = part.unflatten(-1, (2, 2)).transpose(-3, -2).flatten(-4, -3).flatten(-2)
    return functional.pad(square, (0, w - square.shape[-1], 0, h - square.shape[-2]))


def _one(inputs: tuple[Tensor, ...], n: int, o: int, at: tuple[int, int]) -> Any:
    """Return one pre-activation without rounding."""
    from gelu_verify.operators.fused import precisely

    x, weight, bias = inputs
    h, w = x.shape[-2:]
    left: list[float] = [float(bias[o])]
    right: list[float] = [1.0]
    for i, j in _TAPS:
        row, column = at[0] + i - 1, at[1] + j - 1
        if 0 <= row < h and 0 <= column < w:
            left += precisely.numbers(x[n, :, row, column])
            right += precisely.numbers(weight[o, :, i, j])
    return precisely.dot(left, right)


OPERATOR = ConvReluPool()
