"""Results of an elementwise kernel, element by element, with all that judging them needs."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from gelu_verify.formats import Format
from gelu_verify.measure.error import Errors
from gelu_verify.operators import Operator, is_neutral


@dataclass(frozen=True)
class Elements:
    """A batch of kernel results; tensors of shape (N,).

    inputs and actual have the dtype of the format.
    """

    operator: Operator
    formula: str
    fmt: Format
    inputs: tuple[torch.Tensor, ...]
    actual: torch.Tensor
    errors: Errors

    @property
    def x(self) -> torch.Tensor:
        """The argument of the activation, float64."""
        return self.operator.activated(self.inputs)

    @property
    def neutral(self) -> torch.Tensor:
        """Where every argument but the swept one does nothing, bool (N,)."""
        return is_neutral(self.operator.arguments, self.inputs)

    def select(self, mask: torch.Tensor) -> Elements:
        """Return the elements where ``mask`` holds."""
        inputs = tuple(part[mask] for part in self.inputs)
        errors = self.errors.select(mask)
        return Elements(self.operator, self.formula, self.fmt, inputs, self.actual[mask], errors)
