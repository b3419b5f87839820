"""Exact values of pairs: a product of a tabulated factor, or the function at a sum.

``geglu`` is f(gate)·up and ``gelu_backward`` dy·f'(x): one factor has 65,536 values, computed once.
``bias_gelu`` is f(x + bias).

Where f is next to x/2 or x, and f' next to 1/2 or 1, the product or the sum is a tie or a value of
the format, which the exact value never equals. Here it is kept off by two units of float64 on the
side where it lies. So no error is exactly 1/2 ULP, no value exactly a power of two, and float64
decides every rounding there; elsewhere a verdict nearer to its limit than the reference's bound is
open, and is the oracle's.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache
from typing import Any

import torch

from gelu_verify.formats import Format, tensors
from gelu_verify.measure.regions import Regions
from gelu_verify.operators import Operator, place
from gelu_verify.operators.base import never_zero
from gelu_verify.operators.bias_gelu import SUM_ERROR, two_sum
from gelu_verify.reference import fast
from gelu_verify.reference.exact import FastExact

PATTERNS = 1 << 16
#: |x| below which f = x/2 + curvature·x² and f' = 1/2 + 2·curvature·x to 2^-79 of them.
NEAR_ZERO = 2.0**-40
#: From here on f = s to 2^-150 (``bias_gelu``), and e^(-s²/2) or e^(-1.702·s) need not be computed.
FAR = 64.0
#: Outside of these f(x) is certainly on its side of x/2, or of x: x·f''(0) and 1 - f(x)/x, which
#: float64 holds, say so. The same for f' next to 1/2 and to 1.
CERTAIN_BELOW, CERTAIN_FROM = 2.0**-30, 4.0
_TWO_UNITS = 2.0**-51
#: Veltkamp's factor: ``x·2^23 - (x·2^23 - x)`` keeps the upper 30 bits of x, more than p + 1.
_SPLIT = 2.0**23
#: An error nearer to a limit than this, in ULP, is open: above 2·2^p·SUM_ERROR for p <= 11.
OPEN = 2.0**-27


def curvature(formula: str) -> float:
    """Return f''(0)/2: φ(0) for erf, the same for tanh by its slope √(2/π), 1.702/4 for sigmoid."""
    return 1.702 / 4 if formula == "sigmoid" else 1 / math.sqrt(2 * math.pi)


@dataclass(frozen=True)
class PairReference:
    """What both passes need of an operator, formula and 16-bit format, on one device.

    values: of every pattern, float64 (65536,). factor: f or f' of every pattern, kept off its
    limits, float64; None for a sum. codes: region of every pattern as the argument of the
    activation, int64 (65536,), -1 where that is not finite; None for a sum. certain: where float64
    decides every rounding of a product, by pattern of that argument, bool (65536,).
    """

    operator: Operator
    formula: str
    fmt: Format
    regions: Regions
    values: torch.Tensor
    factor: torch.Tensor | None
    codes: torch.Tensor | None
    certain: torch.Tensor

    def places(
        self, first: torch.Tensor, second: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Return region codes (-1: not finite) and whether float64 decides, at patterns (N,)."""
        if self.codes is not None:
            own = first if self.swept == 0 else second
            return self.codes[own], self.certain[own]
        s = self.values[first] + self.values[second]
        codes = torch.where(torch.isfinite(s), self.regions.codes(s.nan_to_num(nan=0.0)), -1)
        return codes, is_certain(s)

    def on_cpu(self) -> PairReference:
        """Return the same tables on the CPU."""
        operator: Any = self.operator  # hashable for the cache, which its protocol does not say
        return pair_reference(operator, self.formula, self.fmt, torch.device("cpu"))

    @property
    def bound(self) -> float:
        """The relative error bound of the exact values."""
        if self.factor is None:
            return SUM_ERROR
        units = fast.RELATIVE_ERROR_BOUND[self.formula, self.operator.derivative]
        return units * 2.0**-53 + 2 * _TWO_UNITS

    @property
    def swept(self) -> int:
        """Which of the two arguments is that of the activation, for a product."""
        return place(self.operator.arguments)

    def exact(self, first: torch.Tensor, second: torch.Tensor) -> FastExact:
        """Return the exact values at patterns (N,), int64, by the same arithmetic as the passes."""
        if self.factor is None:
            high = of_sum(self.values[first], self.values[second], self.formula)
        elif self.swept == 0:
            high = self.factor[first] * self.values[second]
        else:
            high = self.values[first] * self.factor[second]
        nowhere = torch.zeros_like(high, dtype=torch.bool)
        return FastExact(high, nowhere, self.bound)


@cache
def pair_reference(
    operator: Operator, formula: str, fmt: Format, device: torch.device
) -> PairReference:
    """Return the tables of an operator with two arguments, made once a process."""
    values = tensors.from_bits(torch.arange(PATTERNS), fmt).double()
    regions = Regions.of(formula, fmt, operator.derivative)
    factor = codes = None
    if operator.intermediate != "x + bias":
        make = slopes if operator.derivative else activations
        factor = make(values, formula).to(device)
        codes = torch.where(torch.isfinite(values), regions.codes(values), -1).to(device)
    certain = is_certain(values).to(device)
    return PairReference(operator, formula, fmt, regions, values.to(device), factor, codes, certain)


def is_certain(x: torch.Tensor) -> torch.Tensor:
    """Return where the exact value lies on the side of its limit that float64 says, bool (N,)."""
    return (x.abs() < CERTAIN_BELOW) | (x >= CERTAIN_FROM)


def activations(x: torch.Tensor, formula: str) -> torch.Tensor:
    """Return f(x), float64 (N,), off x/2 for |x| < 2^-40 and off x for x >= 4."""
    value = never_zero(fast.gelu(x, formula), x, 0.0)
    half = x / 2
    above = torch.maximum(half + curvature(formula) * x * x, half + half.abs() * _TWO_UNITS)
    value = torch.where((x != 0) & (x.abs() < NEAR_ZERO), above, value)
    saturated = (x >= CERTAIN_FROM) & torch.isfinite(x)
    return torch.where(saturated, torch.minimum(value, x * (1 - _TWO_UNITS)), value)


def slopes(x: torch.Tensor, formula: str) -> torch.Tensor:
    """Return f'(x), float64 (N,), off 1/2 for 0 < |x| < 2^-40 and off 1 for x >= 4."""
    value = never_zero(fast.derivative(x, formula), x, math.nan)
    rise = 2 * curvature(formula) * x
    off = x.sign() * torch.maximum(rise.abs(), torch.full_like(x, _TWO_UNITS))
    value = torch.where((x != 0) & (x.abs() < NEAR_ZERO), 0.5 + off, value)
    saturated = (x >= CERTAIN_FROM) & torch.isfinite(x)
    return torch.where(saturated, value.clamp(min=1 + _TWO_UNITS), value)


def of_sum(x: torch.Tensor, bias: torch.Tensor, formula: str) -> torch.Tensor:
    """Return f(x + bias), float64 (N,), off s/2 and s, s the exact sum, which float64 may round.

    Next to 0, f(s) - fl(s)/2 = lost/2 + curvature·s²; far right, f(s) - fl(s) = lost - s·(1 - f/s).
    """
    s, lost = two_sum((x, bias))
    value = torch.where(s < 0, -0.0, s)  # far left to 2^-1000, far right to 2^-150, and 0
    middle = ((s > -FAR) & (s < FAR) & (s.abs() >= NEAR_ZERO)).nonzero().flatten()
    value[middle] = never_zero(fast.gelu(s[middle], formula), s[middle], 0.0)
    near = ((s.abs() < NEAR_ZERO) & (s != 0)).nonzero().flatten()
    value[near] = _off(s[near] / 2, lost[near] / 2 + curvature(formula) * s[near].square())
    far = ((s >= CERTAIN_FROM) & torch.isfinite(s)).nonzero().flatten()
    value[far] = _beside_identity(s[far], lost[far], value[far], formula)
    # The sign of a sum of 0 is that of IEEE 754.
    return torch.where(s == 0, s, value)


def _off(limit: torch.Tensor, distance: torch.Tensor) -> torch.Tensor:
    """Return ``limit + distance``, two units of float64 off a limit of few bits at least.

    Only that can be a tie or a power of two; a sum of more bits lies beside those by itself, maybe
    by a unit, and must not be moved across.
    """
    large = limit * _SPLIT
    is_short = large - (large - limit) == limit
    off = torch.maximum(distance.abs(), limit.abs() * _TWO_UNITS)
    moved = limit + torch.where(distance < 0, -off, off)
    return torch.where(is_short, moved, limit + distance)


def _beside_identity(
    s: torch.Tensor, lost: torch.Tensor, value: torch.Tensor, formula: str
) -> torch.Tensor:
    below = torch.where(s < FAR, -fast.gelu(-s.clamp(max=FAR), formula), 0.0)
    # Where nothing was lost, f lies below s by what may be less than any float64.
    distance = torch.where(lost == 0, -below.clamp(min=5e-324), lost - below)
    return torch.where(distance.abs() < s * 2.0**-48, _off(s, distance), value)
