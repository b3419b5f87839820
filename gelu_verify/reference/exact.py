"""Exact values of a batch, in the two forms that the error measure takes.

``FastExact`` holds float64 values with a proven relative error bound, for inputs of 32 bits and
fewer. ``PreciseExact`` holds mpmath numbers, for fp64 and for the few points whose verdict the
float64 bound leaves open. Neither is rounded to the kernel's format before it is compared.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import mpmath
import torch

from gelu_verify.formats import Format, tensors

#: Of the difference only; the values have more, and the ambient precision may have fewer.
_COMPARE_BITS = 128


class Exact(Protocol):
    """Exact values of N elements."""

    high: torch.Tensor
    relative_bound: float

    def rounded(self, fmt: Format) -> torch.Tensor:
        """Return RN_T(y), dtype of the format (N,)."""

    def ulp_size(self, fmt: Format) -> torch.Tensor:
        """Return ``ulp_T(y)`` of the unrounded values, float64 (N,)."""

    def compare(self, got: torch.Tensor, fmt: Format) -> tuple[torch.Tensor, torch.Tensor]:
        """Return signed ``(got - y)/ulp_T(y)`` and ``|got - y|``, float64 (N,)."""


class FastExact:
    """Float64 values with a relative error bound, for formats below fp64.

    high: the values, float64 (N,).
    inward: where the exact number is nearer to zero than ``high``, if that is a power of two.
    relative_bound: ``|high - y| <= relative_bound · |y|``.
    """

    def __init__(self, high: torch.Tensor, inward: torch.Tensor, relative_bound: float) -> None:
        self.high = high
        self.inward = inward
        self.relative_bound = relative_bound

    def rounded(self, fmt: Format) -> torch.Tensor:
        """Round the float64 values once."""
        return tensors.round_float64(self.high, fmt)

    def ulp_size(self, fmt: Format) -> torch.Tensor:
        """Return ``ulp_T(y)``."""
        exponent = tensors.binade(self.high, fmt, self.inward)
        # Infinite values have no ULP; any finite exponent keeps the arithmetic defined.
        return tensors.power_of_two(exponent.clamp(max=fmt.emax) - (fmt.precision - 1))

    def compare(self, got: torch.Tensor, fmt: Format) -> tuple[torch.Tensor, torch.Tensor]:
        """Subtract in float64; dividing by a power of two is exact."""
        difference = got - self.high
        return difference / self.ulp_size(fmt), difference.abs()


class PreciseExact:
    """mpmath values, for any format; element by element.

    values: the exact numbers, N of them, correct to far more digits than the format holds.
    negative: which of them carry a minus sign (an mpmath zero has none).
    """

    relative_bound = 0.0

    def __init__(self, values: Sequence[Any], negative: Sequence[bool], fmt: Format) -> None:
        self._values = values
        self._bits = [
            fmt.round(y, negative_zero=minus) for y, minus in zip(values, negative, strict=True)
        ]
        decoded = [fmt.decode(bits) for bits in self._bits]
        self.high = torch.tensor(decoded, dtype=torch.float64)

    def rounded(self, fmt: Format) -> torch.Tensor:
        """Return the correctly rounded values."""
        return tensors.from_patterns(self._bits, fmt)

    def ulp_size(self, fmt: Format) -> torch.Tensor:
        """Return ``ulp_T(y)``."""
        finite = (y if mpmath.isfinite(y) else 1 for y in self._values)
        return torch.tensor([float(fmt.ulp(y)) for y in finite], dtype=torch.float64)

    def compare(self, got: torch.Tensor, fmt: Format) -> tuple[torch.Tensor, torch.Tensor]:
        """Subtract in mpmath; only the finished error becomes a float."""
        signed, absolute = [], []
        with mpmath.workprec(_COMPARE_BITS):
            for g, y in zip(got.tolist(), self._values, strict=True):
                difference = mpmath.mpf(g) - y
                signed.append(float(difference / fmt.ulp(y)) if mpmath.isfinite(y) else torch.nan)
                absolute.append(float(abs(difference)))
        as_tensor = [torch.tensor(part, dtype=torch.float64) for part in (signed, absolute)]
        return as_tensor[0], as_tensor[1]
