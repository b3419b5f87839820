"""What a rewrite did: sites that were replaced, and activations that were left, with the reason."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Replaced:
    """One site. node: the call in the rewritten graph; place: where the model computed it.

    deviation: of the model's constants from the formula's, relative, the largest.
    """

    node: str
    place: str
    operator: str
    formula: str
    deviation: float

    def __str__(self) -> str:
        return f"{self.place}: {self.operator}, {self.formula}"


@dataclass(frozen=True)
class Left:
    """One activation that stays as it is."""

    place: str
    reason: str

    def __str__(self) -> str:
        return f"{self.place}: left alone, {self.reason}"


@dataclass(frozen=True)
class Report:
    """All activations of a model, in the order of its graph."""

    replaced: tuple[Replaced, ...]
    left: tuple[Left, ...]

    def __str__(self) -> str:
        return "\n".join(str(part) for part in (*self.replaced, *self.left)) or "no GELU found"
