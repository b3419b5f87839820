"""Signed errors by binade of x: how far they reach on either side, and their mean."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from gelu_verify.measure.error import Errors

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

    x: float64 (N,), the argument that the binades are of. Only elements with exact and actual
    finite count. Binades below ``LOWEST`` (zero too) are entered there, those above ``HIGHEST``
    there.
    """
    x, error = x[errors.finite], errors.ulp[errors.finite]
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
