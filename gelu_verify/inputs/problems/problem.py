"""One case of a fused operator, written as a line: ``m=33,k=64,n=17,values=normal,seed=3``."""

from __future__ import annotations

from dataclasses import dataclass, field

import torch
from torch import Tensor

from gelu_verify.errors import UsageError, unknown_name
from gelu_verify.formats import Format, tensors
from gelu_verify.inputs.problems.layouts import LAYOUTS
from gelu_verify.inputs.problems.values import VALUES
from gelu_verify.operators.fused import FusedOperator

_TEXTS = ("values", "layout")


@dataclass(frozen=True)
class Problem:
    """Dimensions, a recipe of values, a memory layout, and the seed of what is random.

    dims: dimension to size, in the operator's order.
    """

    dims: tuple[tuple[str, int], ...]
    values: str = "normal"
    layout: str = "contiguous"
    seed: int = 0
    #: Layouts of single arguments that differ from ``layout``.
    special: tuple[tuple[str, str], ...] = field(default=())

    def __str__(self) -> str:
        parts = [f"{name}={size}" for name, size in self.dims]
        parts += [f"values={self.values}"] if self.values != "normal" else []
        parts += [f"layout={self.layout}"] if self.layout != "contiguous" else []
        parts += [f"layout.{name}={layout}" for name, layout in self.special]
        parts += [f"seed={self.seed}"] if self.seed else []
        return ",".join(parts)

    def inputs(
        self, operator: FusedOperator, fmt: Format, device: torch.device
    ) -> tuple[Tensor, ...]:
        """Return the arguments: values of the recipe, rounded once to the format, laid out."""
        generator = torch.Generator().manual_seed(self.seed)
        shapes = operator.shapes(dict(self.dims))
        exact = VALUES[self.values](operator, shapes, fmt, generator)
        layouts = dict(self.special)
        return tuple(
            LAYOUTS[layouts.get(name, self.layout)](_in_format(part, fmt).to(device))
            for name, part in zip(operator.arguments, exact, strict=True)
        )


def _in_format(part: Tensor, fmt: Format) -> Tensor:
    return part.double() if fmt.bits == 64 else tensors.round_float64(part.double(), fmt)


def parse(text: str, operator: FusedOperator) -> Problem:
    """Return the case that a line describes; what is not understood is a usage error."""
    given: dict[str, str] = {}
    for part in text.split(","):
        name, equals, value = part.strip().partition("=")
        if not equals:
            raise UsageError(
                f"case: got {part!r}, expected name=value. Example: {_example(operator)}"
            )
        given[name] = value
    special = {n.partition(".")[2]: v for n, v in given.items() if n.startswith("layout.")}
    known = (*operator.dims, *_TEXTS, "seed", *(f"layout.{a}" for a in operator.arguments))
    for name in given:
        if name not in known:
            raise unknown_name("case", name, known)
    for name in {given.get("layout", "contiguous"), *special.values()}:
        if name not in LAYOUTS:
            raise unknown_name("layout", name, LAYOUTS)
    if given.get("values", "normal") not in VALUES:
        raise unknown_name("values", given["values"], VALUES)
    required = [name for name in operator.dims if name in given or name in _needed(operator)]
    dims = tuple((name, _size(name, given.get(name))) for name in required)
    return Problem(
        dims,
        given.get("values", "normal"),
        given.get("layout", "contiguous"),
        _size("seed", given.get("seed", "0")),
        tuple(sorted(special.items())),
    )


def _needed(operator: FusedOperator) -> tuple[str, ...]:
    """Return the dimensions without which there is no shape: all but a batch."""
    return tuple(name for name in operator.dims if name != "b")


def _size(name: str, text: str | None) -> int:
    if text is None or not text.isdecimal():
        raise UsageError(f"case: got {name}={text}, expected a whole number. Example: {name}=64")
    return int(text)


def _example(operator: FusedOperator) -> str:
    return ",".join(f"{name}=16" for name in _needed(operator))
