"""Signed errors by binade of x: how far they reach on either side, and their mean."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self

import torch

from gelu_verify.measure.error import Errors
from gelu_verify.measure.summary import UNIT

#: The outermost binades that have a row of their own: each holds all that lies beyond.
LOWEST, HIGHEST = -24, 16


@dataclass(frozen=True)
class Reach:
    """The signed errors of one binade: x has the sign and lies in [2^exponent, 2^(exponent+1))."""

    negative: bool
    exponent: int
    count: int
    lowest_ulp: float
    highest_ulp: float
    mean_ulp: float


def reaches(x: torch.Tensor, errors: Errors) -> list[Reach]:
    """Return the reach of every binade with an error, ascending in x.

    x: float64 (N,), the argument that the binades are of. Only elements with x, exact and actual
    finite count. Binades below ``LOWEST`` (zero too) are entered there, those above ``HIGHEST``
    there.
    """
    usable = errors.finite & torch.isfinite(x)  # at -inf GELU is a number, without a binade
    x, error = x[usable], errors.ulp[usable]
    exponent = torch.frexp(x.abs())[1].to(torch.int64) - 1
    exponent[x == 0.0] = LOWEST
    exponent.clamp_(LOWEST, HIGHEST)
    negative = torch.signbit(x)
    # Negative binades first, the largest |x| of them first: ascending in x.
    place = torch.where(negative, HIGHEST - exponent, HIGHEST - 2 * LOWEST + 1 + exponent)
    found = []
    for row in place.unique().tolist():
        members = error[place == row]
        below = row <= HIGHEST - LOWEST
        found.append(
            Reach(
                negative=below,
                exponent=HIGHEST - row if below else row - (HIGHEST - 2 * LOWEST + 1),
                count=members.numel(),
                lowest_ulp=float(members.min()),
                highest_ulp=float(members.max()),
                mean_ulp=float(members.mean()),
            )
        )
    return found


@dataclass
class Spread:
    """Signed errors of some inputs, which merges exactly: integers, in units of 2^-20 ULP.

    signed_sum: as the summary adds them, errors beyond 2^24 ULP as ±2^24. lowest, highest: of no
    meaning while ``count`` is 0.
    """

    count: int = 0
    signed_sum: int = 0
    lowest: int = 0
    highest: int = 0

    @classmethod
    def of(cls, count: int, signed_sum: int, lowest_ulp: float, highest_ulp: float) -> Self:
        """Return the spread of errors whose sum is known in units, their extremes in ULP."""
        return cls(count, signed_sum, round(lowest_ulp * UNIT), round(highest_ulp * UNIT))

    def merge(self, other: Spread) -> None:
        """Add the errors of other inputs."""
        if other.count == 0:
            return
        first = self.count == 0
        self.lowest = other.lowest if first else min(self.lowest, other.lowest)
        self.highest = other.highest if first else max(self.highest, other.highest)
        self.count += other.count
        self.signed_sum += other.signed_sum


def of_binades(spreads: Mapping[int, Spread]) -> list[Reach]:
    """Return the reach of every binade of fp32, by its sign and exponent fields, as ``reaches``."""
    joined: dict[tuple[bool, int], Spread] = {}
    for fields, spread in spreads.items():
        exponent = min(max((fields & 0xFF) - 127, LOWEST), HIGHEST)
        joined.setdefault((fields >= 0x100, exponent), Spread()).merge(spread)
    return [
        Reach(negative, exponent, found.count, found.lowest / UNIT, found.highest / UNIT,
              found.signed_sum / UNIT / found.count)
        for (negative, exponent), found in sorted(joined.items(), key=lambda item: _place(*item[0]))
        if found.count
    ]  # fmt: skip


def _place(negative: bool, exponent: int) -> tuple[bool, int]:
    """Return what binades sort by to ascend in x."""
    return not negative, -exponent if negative else exponent
