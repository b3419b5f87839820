"""Memory layouts of a tensor of any shape, by name: the same values at other strides."""

from __future__ import annotations

from collections.abc import Callable

from torch import Tensor

Layout = Callable[[Tensor], Tensor]


def contiguous(x: Tensor) -> Tensor:
    """Return a tensor of its own, row by row."""
    return x.contiguous()


LAYOUTS: dict[str, Layout] = {"contiguous": contiguous}
