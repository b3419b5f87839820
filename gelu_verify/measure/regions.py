"""Regions of x, so that a tail cannot drown the rest.

The outer two borders depend on the format and the function, because they are the points from
which its rounded value is known in closed form: 0 on the left, x (the derivative: 1) on the right.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

import torch

from gelu_verify.formats import Format
from gelu_verify.reference.thresholds import thresholds


class Region(StrEnum):
    """A range of x; the order is from left to right, ``tiny`` last."""

    ZERO = "zero"
    DEEP_TAIL = "deep_tail"
    TAIL = "tail"
    SHOULDER = "shoulder"
    CENTRE = "centre"
    POSITIVE = "positive"
    SATURATED = "saturated"
    TINY = "tiny"


REGIONS = tuple(Region)
TINY_BELOW = 2.0**-12
#: Where ``1 + erf(x/√2)`` becomes exactly 0 in float32.
DEEP_TAIL_FROM = -5.54
TAIL_FROM = -3.0


@dataclass(frozen=True)
class Regions:
    """The regions of one function in one format.

    zero_threshold: every x at or below it has an exact value that rounds to zero.
    identity_threshold: every x from it on has an exact value that rounds to x (derivative: to 1).
    """

    zero_threshold: float
    identity_threshold: float

    @classmethod
    def of(cls, formula: str, fmt: Format, derivative: int) -> Regions:
        """Return the regions of a formula (derivative 0) or its first derivative (1)."""
        return cls(*thresholds(formula, fmt, derivative))

    def borders(self) -> tuple[float, ...]:
        """Return the six borders between the seven ranges from ZERO to SATURATED, ascending."""
        identity = max(self.identity_threshold, 1.0)
        inner = (DEEP_TAIL_FROM, TAIL_FROM, -1.0)
        return (self.zero_threshold, *(max(self.zero_threshold, b) for b in inner), 1.0, identity)

    def codes(self, x: torch.Tensor) -> torch.Tensor:
        """Return the index into ``REGIONS`` of every x (float64, no NaN), as int64."""
        zero, deep, tail, shoulder, centre, identity = self.borders()
        # Each comparison that holds moves a point one range to the right. Open and closed ends are
        # those of the definitions: [a, b) on the left side, [-1, 1] around 0, then (1, identity).
        code = (x > zero).to(torch.int64)
        for border in (deep, tail, shoulder):
            code += x >= border
        code += x > centre
        code += (x >= identity) & (x > centre)
        # In short formats the zero threshold is also the border of the tail next to it.
        code[x <= zero] = REGIONS.index(Region.ZERO)
        code[x.abs() < TINY_BELOW] = REGIONS.index(Region.TINY)
        return code
