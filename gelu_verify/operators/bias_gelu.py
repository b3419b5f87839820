"""``bias_gelu(x, bias) = f(s)``, s = x + bias the exact sum, f the formula."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from gelu_verify.operators import gelu

if TYPE_CHECKING:
    import torch

    from gelu_verify.formats import Format
    from gelu_verify.reference.exact import Exact

#: ``|fast.gelu(fl(x + bias)) - f(x + bias)| <= SUM_ERROR · |f|`` for x and bias of fp32 or shorter,
#: wherever |f| >= 2^-1000. In u = 2^-53, beyond the bound that ``reference.fast`` states for an
#: argument of 24 bits (at most 16u): the sum is off by u, which the condition number |s·f'/f| of
#: the left tail multiplies; and the exponent of the tail, at most 693 where f >= 2^-1000, has
#: roundings that are exact for 24 bits.
#:
#: - erf: condition s² + 1 <= 1387; a² is rounded once, so e^(-a²/2) is off by 693u: 2080u;
#: - tanh: condition s·v' + 1 <= 3·693 + 1, v = a·g with six roundings, 6·693u: 6240u;
#: - sigmoid: condition v + 1 <= 694, v with two roundings, 2·693u: 2080u.
SUM_ERROR = 2.0**-40
#: From here on f(s) = s to more than 2^-150 for all formulas, below which no bf16 number is.
_IDENTITY_FROM = 64.0
#: Sums between these are far from 0 and from the identity: 200 bits of f tell all that can matter.
_PLAIN = (2.0**-100, 16.0)
#: The longest sum of two fp64 numbers has 2098 bits.
_SUM_BITS = 2200
#: Bits in which f(s) differs from s/2 and from s where it is computed, and how far beyond it lies.
_LONG_BITS, _BESIDE = 1400, -2400


class BiasGelu:
    """The activation of a sum, as in the epilogue of a matrix product."""

    name = "bias_gelu"
    definition = "f(x + bias)"
    arguments: tuple[str, ...] = ("x", "bias")
    derivative = 0
    intermediate: str | None = "x + bias"

    def shaped(self, inputs: tuple[torch.Tensor, ...]) -> tuple[torch.Tensor, ...]:
        """Return x (..., N) and bias (N,): one row for x (N,), else a bias alike in all rows."""
        x, bias = inputs
        if x.dim() < 2:
            return x.reshape(1, -1) if x.dim() == 0 else x[None], bias.reshape(x.numel())
        for _ in x.shape[:-1]:
            bias = bias[0]
        return x, bias

    def activated(self, inputs: tuple[torch.Tensor, ...]) -> torch.Tensor:
        """Return x + bias, rounded to float64."""
        return inputs[0].double() + inputs[1].double()

    def approximate(self, inputs: tuple[torch.Tensor, ...], formula: str) -> torch.Tensor:
        """Return f(fl(x + bias)) in float64."""
        from gelu_verify.reference import fast

        return fast.gelu(self.activated(inputs), formula)

    def exact_at(self, numbers: list[float], formula: str) -> Any:
        """Return f(x + bias) from the oracle."""
        return _value(formula, *numbers)

    def exact(self, inputs: tuple[torch.Tensor, ...], formula: str, fmt: Format) -> Exact:
        """Return ``f(x + bias)``: float64 within ``SUM_ERROR`` below fp64, mpmath for fp64."""
        from gelu_verify.reference.exact import FastExact

        if fmt.bits == 64:
            return self.precise(inputs, formula, fmt)
        high = self.approximate(inputs, formula)
        inward = self._side(inputs, high, formula) * high.sign() < 0
        return FastExact(high, inward, SUM_ERROR)

    def precise(self, inputs: tuple[torch.Tensor, ...], formula: str, fmt: Format) -> Exact:
        """Return ``f(x + bias)`` from the oracle, at the exact sum."""
        from gelu_verify.reference.exact import PreciseExact

        pairs = zip(*(part.double().tolist() for part in inputs), strict=True)
        values, negative = [], []
        for x, bias in pairs:
            values.append(_value(formula, x, bias))
            # The sign of a sum is right in float64, and that of an exact 0 is IEEE 754's.
            negative.append(math.copysign(1.0, x + bias) < 0)
        return PreciseExact(values, negative, fmt)

    def side_of_tie(self, inputs: tuple[torch.Tensor, ...]) -> torch.Tensor:
        """Return the side for |s| < 2^-60, and from 64 on: f(s) lies just below s, and s where
        float64 rounded the sum on the side of what it lost.
        """
        s, lost = two_sum(inputs)
        # Next to 0 it is s/2 + lost/2 + s²·f''(0)/2, the last of them positive.
        small = ((s != 0) & (s.abs() < 2.0**-60) & (lost >= 0)).double()
        far = (lost.sign() - (lost == 0).double()) * (s >= _IDENTITY_FROM).double()
        return small + far

    def reach(
        self, inputs: tuple[torch.Tensor, ...], formula: str, fmt: Format
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Return how far f(s') lies from f(s) for s' in [s(1 - u), s(1 + u)], u = 2^-p.

        f falls up to its minimum and rises from there: the extremes are those of the ends and, if
        it lies between, of the minimum. In fp64, where float64 does not tell the ends apart,
        |s·f'(s)|·u, 1 % more for the second order, and s²·u² next to the minimum, where f' is 0.
        """
        import torch

        from gelu_verify.reference import fast
        from gelu_verify.reference.oracle import minimum

        s, u = self.activated(inputs), fmt.unit_roundoff
        if fmt.bits == 64:
            spread = (s * fast.derivative(s, formula)).abs() * (1.01 * u) + s * s * u * u
            return spread, spread
        centre = fast.gelu(s, formula)
        ends = torch.stack([fast.gelu(s * (1 - u), formula), fast.gelu(s * (1 + u), formula)])
        turning, lowest = (float(number) for number in minimum(formula))
        inside = ((s * (1 - u) - turning) * (s * (1 + u) - turning)) <= 0
        low = torch.where(inside, lowest, ends.amin(0))
        return (centre - low).clamp(min=0.0), (ends.amax(0) - centre).clamp(min=0.0)

    def underflows(self, inputs: tuple[torch.Tensor, ...], smallest: float) -> torch.Tensor:
        """Return where both arguments are below the smallest normal number."""
        x, bias = (part.double().abs() for part in inputs)
        return (x < smallest) & (bias < smallest)

    def cancellation(self, inputs: tuple[torch.Tensor, ...], formula: str) -> torch.Tensor:
        """Return ``|s|``: as for GELU itself."""
        return self.activated(inputs).abs()

    def saturated(
        self, inputs: tuple[torch.Tensor, ...], actual: torch.Tensor, threshold: float
    ) -> torch.Tensor:
        """Return where the output is 0 for ``s <= -threshold`` or RN(s) for ``s >= threshold``."""
        from gelu_verify.formats import tensors

        s, got = self.activated(inputs), actual.double()
        rounded = tensors.round_float64(s, tensors.format_of(actual.dtype)).double()
        return ((s <= -threshold) & (got == 0)) | ((s >= threshold) & (got == rounded))

    def _side(
        self, inputs: tuple[torch.Tensor, ...], high: torch.Tensor, formula: str
    ) -> torch.Tensor:
        """Return on which side of ``high`` the exact value lies where that is just fl(s) or
        fl(s)/2; float64 (N,): positive above, negative below.

        With s = fl(s) + lost: f(s) - fl(s)/2 = lost/2 + s²·f''(0)/2 next to 0, and far right
        f(s) - fl(s) = lost - s·(1 - f(s)/s).
        """
        import torch

        from gelu_verify.reference import fast

        s, lost = two_sum(inputs)
        far = s > 1.0
        # f''(0)/2 is φ(0) for erf and for tanh, whose slope is √(2/π); 1.702/4 for sigmoid.
        curvature = 1.702 / 4 if formula == "sigmoid" else 1 / math.sqrt(2 * math.pi)
        # s·(1 - f(s)/s) = -f(-s) > 0, by the symmetry of Φ and σ.
        below = (-fast.gelu(-s.clamp(min=1.0), formula)).clamp(min=5e-324)
        side = torch.where(far, lost - below, lost / 2 + s * s * curvature)
        limit = torch.where(far, s, s / 2)
        ordinary = torch.where(far | (s < 0), -high.sign(), high.sign())
        return torch.where(high == limit, side, ordinary)


def two_sum(inputs: tuple[torch.Tensor, ...]) -> tuple[torch.Tensor, torch.Tensor]:
    """Return fl(x + bias) and what it lost, float64, exactly (Knuth 1969, theorem 4.2.2 B)."""
    x, bias = (part.double() for part in inputs)
    s = x + bias
    virtual = s - x
    lost = (x - (s - virtual)) + (bias - virtual)
    return s, lost.nan_to_num(nan=0.0)


def _value(formula: str, x: float, bias: float) -> Any:
    """Return f(x + bias) at the exact sum, beside s/2 or s where f is too near to tell.

    A sum that float64 holds is GELU's own affair. A longer one (up to 2098 bits) is itself beside
    every boundary of a format by 2^-1079 of it or more, while f(s) is nearer to s than 2^-1400
    where 1400 bits do not tell them apart: 2^-2400 decides, and is decided by, nothing else.
    """
    import mpmath

    rounded = x + bias
    with mpmath.workprec(_SUM_BITS):
        s = mpmath.mpf(x) + mpmath.mpf(bias)
        if not math.isfinite(x) or not math.isfinite(bias) or s == rounded:
            return gelu.value(formula, rounded)
    if s < -1024:
        return gelu.value(formula, -1024.0)
    plain = _PLAIN[0] < abs(s) and s < _PLAIN[1]
    if s <= 1024:
        exact = _at_sum(formula, s, 200 if plain else _LONG_BITS)
        if exact != s:
            return exact
    with mpmath.workprec(_SUM_BITS - _BESIDE):
        return s * (1 - mpmath.ldexp(1, _BESIDE))


@lru_cache(maxsize=1 << 16)
def _at_sum(formula: str, s: Any, bits: int) -> Any:
    """Return f(s) from the oracle, s an mpmath number; kept, as many pairs share their sum."""
    from gelu_verify.reference import oracle

    return oracle.value(formula, s, bits=bits)


BIAS_GELU = BiasGelu()
