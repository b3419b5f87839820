"""What a model gives: its results, and the gradients of all parameters and inputs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.utils import _pytree as pytree


@dataclass(frozen=True)
class Evaluation:
    """Results by position (``result 0``) and gradients by name (``d weight``), detached."""

    results: dict[str, Tensor]
    gradients: dict[str, Tensor]

    @property
    def all(self) -> dict[str, Tensor]:
        """Results and gradients, by name."""
        return {**self.results, **self.gradients}


def evaluate(
    run: Callable[..., Any], parameters: Mapping[str, Tensor], inputs: tuple[Any, ...], seed: int
) -> Evaluation:
    """Call a model and go backward from all its results.

    The cotangents are unit normals of the seed, rounded to bf16, which every format holds exactly
    (fp16: all but the smallest), so that all evaluations of one model have the same.
    """
    leaves = tuple(_leaf(part) for part in inputs)
    given = [part for part in pytree.tree_leaves(run(*leaves)) if _is_real(part)]
    results = {f"result {index}": part for index, part in enumerate(given)}
    wanted = {f"d {name}": part for name, part in parameters.items() if part.requires_grad}
    wanted |= {f"d input {i}": part for i, part in enumerate(leaves) if _is_real(part)}
    ends = [part for part in given if part.requires_grad]
    gradients: dict[str, Tensor] = {}
    if ends and wanted:
        generator = torch.Generator().manual_seed(seed)
        dys = [_cotangent(part, generator) for part in ends]
        parts = torch.autograd.grad(ends, list(wanted.values()), dys, allow_unused=True)
        pairs = zip(wanted.items(), parts, strict=True)
        gradients = {name: torch.zeros_like(x) if g is None else g for (name, x), g in pairs}
    return Evaluation({name: part.detach() for name, part in results.items()}, gradients)


def widened(inputs: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return inputs in float64 where they are real tensors."""
    return tuple(part.detach().double() if _is_real(part) else part for part in inputs)


def distance(got: Tensor, right: Tensor) -> float:
    """Return ``‖got - right‖/‖right‖`` in float64; NaN where either has one, 0 for 0 of 0."""
    off = (got.double() - right.double()).norm()
    size = right.double().norm()
    return float(off) if float(off) == 0.0 else float(off / size)


def _leaf(part: Any) -> Any:
    # A copy: a model may change its input in place, which no leaf permits.
    return part.detach().clone().requires_grad_() if _is_real(part) else part


def _is_real(part: Any) -> bool:
    return isinstance(part, Tensor) and part.is_floating_point()


def _cotangent(part: Tensor, generator: torch.Generator) -> Tensor:
    dy = torch.randn(part.shape, generator=generator).to(torch.bfloat16)
    return dy.to(part.device, part.dtype)
