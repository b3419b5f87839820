"""One case of a fused operator, written as a line: ``m=33,k=64,n=17,values=normal,seed=3``."""

from __future__ import annotations

from dataclasses import dataclass, field

import torch
from torch import Tensor

from gelu_verify.formats import Format, tensors
from gelu_verify.inputs.problems.layouts import LAYOUTS
from gelu_verify.inputs.problems.recipes import RECIPES
from gelu_verify.inputs.problems.values import Draft
from gelu_verify.operators.fused import FusedOperator


@dataclass(frozen=True)
class Problem:
    """Dimensions, a recipe of values, a memory layout, and the seed of what is random.

    dims: dimension to size, a batch first, then in the operator's order.
    """

    dims: tuple[tuple[str, int], ...]
    values: str = "normal"
    layout: str = "contiguous"
    seed: int = 0
    #: Layouts of single arguments that differ from ``layout``, in order of name.
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
        draft = Draft(operator, operator.shapes(dict(self.dims)), fmt, generator)
        exact = RECIPES[self.values](draft)
        layouts = dict(self.special)
        return tuple(
            LAYOUTS[layouts.get(name, self.layout)](_in_format(part, fmt).to(device))
            for name, part in zip(operator.arguments, exact, strict=True)
        )


def _in_format(part: Tensor, fmt: Format) -> Tensor:
    return tensors.round_float64(part.double(), fmt)
