"""Recipes of values, by name: each gives one float64 tensor an argument, before rounding.

A recipe takes a :class:`Draft`, which has normal values for every argument, and returns those that
it replaces. Those that only some operators can take name them. Here are the general ones;
:mod:`.hard_values` has what is known to hurt one operator, :mod:`.recipes` the one list.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from gelu_verify.formats import Format
from gelu_verify.operators.fused import FusedOperator
from gelu_verify.operators.fused.base import Shape

#: Operators with a sum of products: its two operands, and the dimension of both that is summed.
PRODUCTS: dict[str, tuple[str, str, int]] = {
    "linear_gelu": ("x", "weight", -1),
    "conv_relu_pool": ("x", "weight", 1),
    "attention": ("q", "k", -1),
}


@dataclass(frozen=True)
class Draft:
    """What a recipe starts from. shapes: one an argument."""

    operator: FusedOperator
    shapes: tuple[Shape, ...]
    fmt: Format
    generator: torch.Generator

    @cached_property
    def parts(self) -> dict[str, Tensor]:
        """Unit normals for every argument; a weight scaled so that sums are unit normals too."""
        names = self.operator.arguments
        parts = {name: self.normal(s) for name, s in zip(names, self.shapes, strict=True)}
        weight = parts.get("weight")
        if weight is not None and weight.dim() > 1:
            parts["weight"] = weight / max(weight[:1].numel(), 1) ** 0.5
        return parts

    @property
    def main(self) -> str:
        """The argument whose rows become the rows of the result."""
        return self.operator.arguments[0]

    def normal(self, shape: Shape) -> Tensor:
        """Return unit normals."""
        return torch.randn(shape, generator=self.generator, dtype=torch.float64)

    def integers(self, low: int, high: int, shape: Shape) -> Tensor:
        """Return integers from low to high, both included, all as likely."""
        return torch.randint(low, high + 1, shape, generator=self.generator).double()

    def pick(self, count: int) -> int:
        """Return an index below ``count``."""
        return int(torch.randint(count, (), generator=self.generator))


@dataclass(frozen=True)
class Recipe:
    """How values are made, and which operators take it (all if there are none)."""

    make: Callable[[Draft], Mapping[str, Tensor]]
    operators: tuple[str, ...] = ()

    def __call__(self, draft: Draft) -> tuple[Tensor, ...]:
        """Return the values of every argument."""
        parts = {**draft.parts, **self.make(draft)}
        return tuple(parts[name] for name in draft.operator.arguments)


def normal(draft: Draft) -> Mapping[str, Tensor]:
    """Keep the unit normals."""
    return {}


def distinct(draft: Draft) -> Mapping[str, Tensor]:
    """Give every column a bias of its own, from -5 to 3, not in order; other terms are small."""
    bias = draft.parts["bias"]
    ladder = torch.linspace(-5.0, 3.0, bias.numel(), dtype=torch.float64)
    order = torch.randperm(bias.numel(), generator=draft.generator)
    return {draft.main: draft.parts[draft.main] / 4, "bias": ladder[order]}


def indexed(draft: Draft) -> Mapping[str, Tensor]:
    """Take small integers whose sums are exact in fp32, so that one element misread shows.

    A product sums digits -1, 0, 1 times -2 to 2, in steps of four ULP of a result next to 3, where
    GELU is still told from the identity. Without a product, elements count up.
    """
    step = 2.0 ** (4 - min(draft.fmt.precision, 8))
    found: dict[str, Tensor] = {}
    if draft.operator.name in PRODUCTS:
        left, right, _ = PRODUCTS[draft.operator.name]
        found[left] = draft.integers(-1, 1, draft.parts[left].shape)
        found[right] = draft.integers(-2, 2, draft.parts[right].shape) * step
        if "bias" in draft.parts:
            found["bias"] = torch.full_like(draft.parts["bias"], 3.0)
        found |= {name: _counted(draft, name) for name in ("v",) if name in draft.parts}
        return found
    return {name: _counted(draft, name) for name in draft.parts}


def _counted(draft: Draft, name: str) -> Tensor:
    """Return different values from 1/2 to 4 in order of place, as far as the format has them."""
    part = draft.parts[name]
    levels = 3 << (min(draft.fmt.precision, 11) - 2)  # exactly representable between 1 and 4
    # A step coprime to the levels: neighbours in a row and in a column are far apart.
    codes = torch.arange(part.numel()) * (levels // 2 - 1) % levels
    return (0.5 + codes.double() / levels * 3.5).reshape(part.shape)


def ladder(draft: Draft) -> Mapping[str, Tensor]:
    """Scale rows from the smallest normal amplitude up to the overflow of the format."""
    fmt, part = draft.fmt, draft.parts[draft.main]
    # float64 must hold the sums of fp64, or nothing is exact.
    top = min(fmt.emax, 1000)
    rows = part.shape[-2]
    exponents = torch.linspace(fmt.emin, top, rows, dtype=torch.float64).round()
    if rows == 1:
        exponents[0] = fmt.emin + draft.pick(top - fmt.emin)
    scaled = part * torch.exp2(exponents)[:, None]
    return {draft.main: scaled.clamp(-fmt.largest, fmt.largest)}


def cancelling(draft: Draft) -> Mapping[str, Tensor]:
    """Make sums far smaller than the sum of their magnitudes; the last term breaks the balance.

    Pairs ``(16a)·b`` and ``(-48a)·(b/3)``: b/3 is rounded, so a product of inputs of fewer bits
    (TF32) leaves something else behind.
    """
    left, right, axis = PRODUCTS[draft.operator.name]
    a, b = (draft.normal(draft.parts[name].shape) for name in (left, right))
    half = max(a.shape[axis] - 1, 0) // 2
    a_first, b_first = a.narrow(axis, 0, half), b.narrow(axis, 0, half)
    a_first.mul_(16.0)
    a.narrow(axis, half, half).copy_(a_first * -3.0)
    b.narrow(axis, half, half).copy_(b_first / 3.0)
    return {left: a, right: b}


def zero_weight(draft: Draft) -> Mapping[str, Tensor]:
    """Take a weight of zero: the result is the function of the bias alone."""
    return {"weight": torch.zeros_like(draft.parts["weight"])}


def identity(draft: Draft) -> Mapping[str, Tensor]:
    """Take arguments that leave x as it is before the activation."""
    found = {draft.main: draft.parts[draft.main] * 2.0}
    if "bias" in draft.parts:
        found["bias"] = torch.zeros_like(draft.parts["bias"])
    if "up" in draft.parts:
        found["up"] = torch.ones_like(draft.parts["up"])
    weight = draft.parts.get("weight")
    if weight is not None and weight.dim() == 1:
        found["weight"] = torch.ones_like(weight)
    elif weight is not None:
        found["weight"] = torch.zeros_like(weight)
        centre = found["weight"][..., 1, 1] if weight.dim() == 4 else found["weight"]
        centre.diagonal().fill_(1.0)
    return found
