"""Recipes of values, by name: each gives one float64 tensor an argument, before rounding."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from gelu_verify.formats import Format
from gelu_verify.operators.fused import FusedOperator
from gelu_verify.operators.fused.base import Shape

Recipe = Callable[[FusedOperator, tuple[Shape, ...], Format, torch.Generator], tuple[Tensor, ...]]


def normal(
    operator: FusedOperator, shapes: tuple[Shape, ...], fmt: Format, generator: torch.Generator
) -> tuple[Tensor, ...]:
    """Return unit normals, the second operand of a product scaled by 1/√K."""
    parts = [torch.randn(shape, generator=generator, dtype=torch.float64) for shape in shapes]
    if len(shapes) > 1 and len(shapes[1]) > 1:
        parts[1] = parts[1] / max(shapes[1][-1], 1) ** 0.5
    return tuple(parts)


VALUES: dict[str, Recipe] = {"normal": normal}
