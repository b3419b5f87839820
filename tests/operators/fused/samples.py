"""Values that fused operators are tried on, by name."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from gelu_verify.bounds.arithmetic import Arithmetic, Growth
from gelu_verify.contracts import get
from gelu_verify.formats import FORMATS, Format, tensors
from gelu_verify.operators import fused


def _normal(part: Tensor, place: int) -> Tensor:
    return part


def _wide(part: Tensor, place: int) -> Tensor:
    return part * 8


def _small(part: Tensor, place: int) -> Tensor:
    return part * 2.0**-60


def _tiny(part: Tensor, place: int) -> Tensor:
    return part * 2.0**-128


def _offset(part: Tensor, place: int) -> Tensor:
    return part + 100 if place == 0 else part


def _constant(part: Tensor, place: int) -> Tensor:
    return torch.full_like(part, 0.3) if place == 0 else part


def _cancelling(part: Tensor, place: int) -> Tensor:
    """Two halves that cancel, but for what rounding leaves."""
    half = part.shape[-1] // 2
    kept = part.clone()
    if place == 0:
        kept[..., half : 2 * half] = -kept[..., :half]
    return kept if place == 0 else torch.full_like(part, 0.7)


def _zero(part: Tensor, place: int) -> Tensor:
    return torch.zeros_like(part)


def _ladder(part: Tensor, place: int) -> Tensor:
    steps = torch.arange(part.numel(), dtype=torch.float64).reshape(part.shape)
    return part * 2.0 ** (steps % 24 - 12)


STYLES: dict[str, Callable[[Tensor, int], Tensor]] = {
    style.__name__[1:]: style
    for style in (_normal, _wide, _small, _tiny, _offset, _constant, _cancelling, _zero, _ladder)
}


def inputs(
    name: str, dims: dict[str, int], fmt: Format, style: str = "normal", seed: int = 0
) -> tuple[Tensor, ...]:
    """Return arguments of an operator in a format."""
    generator = torch.Generator().manual_seed(seed)
    shapes = fused.get(name).shapes(dims)
    parts = [torch.randn(shape, generator=generator, dtype=torch.float64) for shape in shapes]
    return tuple(in_format(STYLES[style](part, i), fmt) for i, part in enumerate(parts))


def upstream(shape: tuple[int, ...], fmt: Format, seed: int = 0) -> Tensor:
    """Return a gradient of a result."""
    generator = torch.Generator().manual_seed(seed + 1)
    return in_format(torch.randn(shape, generator=generator, dtype=torch.float64), fmt)


def in_format(part: Tensor, fmt: Format) -> Tensor:
    """Return float64 values rounded to a format."""
    return tensors.round_float64(part, fmt)


def arithmetic(
    name: str, contract: str = "cancelling", growth: Growth = "probabilistic"
) -> Arithmetic:
    """Return the default arithmetic of a format on a CPU."""
    return Arithmetic.of(FORMATS[name], get(contract), growth=growth)
