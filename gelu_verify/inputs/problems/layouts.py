"""Memory layouts of a tensor of any shape, by name: the same values at other strides.

What lies around and between the values is poison: NaN and a large value by turns, so that a kernel
that reads what is not its own shows, whether it adds it or takes a maximum.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

#: Elements of poison before and after a guarded tensor: a multiple of every alignment in use, and
#: wider than the tail of a vector load.
GUARD = 64
#: Exactly a value of every format, and far from what the recipes give.
_LARGE = 96.0


@dataclass(frozen=True)
class Layout:
    """A way to lay a tensor out. rank: least number of dimensions; a tensor of fewer is copied."""

    place: Callable[[Tensor], Tensor]
    rank: int = 1

    def __call__(self, x: Tensor) -> Tensor:
        """Return x laid out; contiguous if it has too few dimensions."""
        return self.place(x) if x.dim() >= self.rank else contiguous(x)


def contiguous(x: Tensor) -> Tensor:
    """Return x row by row, in memory of its own."""
    return x.clone(memory_format=torch.contiguous_format)


def guarded(x: Tensor) -> Tensor:
    """Return x contiguous and aligned, poison before and after it."""
    return _within(x, GUARD)


def misaligned(x: Tensor) -> Tensor:
    """Return x contiguous, one element away from alignment, poison before and after it."""
    return _within(x, GUARD + 1)


def transposed(x: Tensor) -> Tensor:
    """Return x with its last two dimensions stored in the other order."""
    return x.mT.contiguous().mT


def permuted(x: Tensor) -> Tensor:
    """Return x with its first two dimensions stored in the other order: (M, B, K) for (B, M, K)."""
    return x.transpose(0, 1).contiguous().transpose(0, 1)


def strided(x: Tensor) -> Tensor:
    """Return every second element of rows twice as long, poison between."""
    buffer = _poisoned((*x.shape[:-1], 2 * x.shape[-1]), x)
    return buffer[..., ::2].copy_(x)


def sliced(x: Tensor) -> Tensor:
    """Return rows and columns of a wider buffer, from an odd offset, poison on every side."""
    if x.dim() == 1:
        return _poisoned((x.shape[0] + 8,), x)[3:-5].copy_(x)
    buffer = _poisoned((*x.shape[:-2], x.shape[-2] + 2, x.shape[-1] + 8), x)
    return buffer[..., 1:-1, 3:-5].copy_(x)


def chunked(x: Tensor) -> Tensor:
    """Return the second chunk of a packed projection (..., 2K); the first holds other numbers."""
    shape = (*x.shape[:-1], 2 * x.shape[-1])
    packed = torch.full(shape, _LARGE, dtype=x.dtype, device=x.device)
    return packed.chunk(2, -1)[1].copy_(x)


def expanded(x: Tensor) -> Tensor:
    """Return the first of the first dimension for all of it, with stride 0: other values than x."""
    return x[:1].clone().expand(x.shape) if x.numel() else x.contiguous()


def expanded_last(x: Tensor) -> Tensor:
    """Return the first of the last dimension for all of it, with stride 0: other values than x."""
    return x[..., :1].clone().expand(x.shape) if x.numel() else x.contiguous()


def channels_last(x: Tensor) -> Tensor:
    """Return images (N, C, H, W) with their channels side by side."""
    return x.contiguous(memory_format=torch.channels_last)


#: The two that repeat a part of the values: a kernel gives another result for them.
REPEATING = ("expanded", "expanded_last")
LAYOUTS: dict[str, Layout] = {
    "contiguous": Layout(contiguous),
    "guarded": Layout(guarded),
    "misaligned": Layout(misaligned),
    "sliced": Layout(sliced),
    "strided": Layout(strided),
    "chunked": Layout(chunked),
    "transposed": Layout(transposed, rank=2),
    "permuted": Layout(permuted, rank=3),
    "expanded": Layout(expanded),
    "expanded_last": Layout(expanded_last, rank=2),
    "channels_last": Layout(channels_last, rank=4),
}


def _within(x: Tensor, start: int) -> Tensor:
    buffer = _poisoned((start + x.numel() + GUARD,), x)
    return buffer[start : start + x.numel()].view(x.shape).copy_(x)


def _poisoned(shape: tuple[int, ...], like: Tensor) -> Tensor:
    """Return NaN, NaN, a large value, and so on: gaps of any even stride meet both."""
    buffer = torch.full((torch.Size(shape).numel(),), torch.nan, device=like.device)
    buffer[2::3] = _LARGE
    return buffer.to(like.dtype).view(shape)
