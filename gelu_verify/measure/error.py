"""How far an actual value is from the exact one: the error in ULP, and the classes of failure.

Definitions (Goldberg 1991; Muller et al., Handbook of Floating-Point Arithmetic, 2nd ed., 2.3.1):

- ``ulp_T(y) = 2^(max(floor(log2|y|), emin) - p + 1)`` from the unrounded exact value y;
- ``error = (actual - y) / ulp_T(y)``, signed, a real number;
- ``steps = ord(actual) - ord(RN_T(y))``, an integer.

NaN and infinities are classified before anything is subtracted; an element whose class has no
distance (``Class.has_distance`` is False) stays out of every ULP figure. The other classes have a
distance, and it does enter the figures: a maximum that left out the inputs where a kernel loses
everything would flatter it. They are counted apart all the same.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

import torch

from gelu_verify.formats import Format, tensors
from gelu_verify.reference.exact import Exact


class Class(IntEnum):
    """What kind of wrong an element is, the gravest first; ``NONE`` for an ordinary error."""

    NONE = 0
    NAN_FOR_NUMBER = 1
    NUMBER_FOR_NAN = 2
    INFINITY_FOR_FINITE = 3
    LOST_INFINITY = 4
    OPPOSITE_SIGN = 5
    COLLAPSE = 6
    FLUSHED_SUBNORMAL = 7
    WRONG_ZERO_SIGN = 8

    @property
    def has_distance(self) -> bool:
        """Whether actual and exact are both finite numbers."""
        return self not in _WITHOUT_DISTANCE

    @property
    def label(self) -> str:
        """The name used in records and tables."""
        return self.name.lower()


_WITHOUT_DISTANCE = frozenset(
    {Class.NAN_FOR_NUMBER, Class.NUMBER_FOR_NAN, Class.INFINITY_FOR_FINITE, Class.LOST_INFINITY}
)


@dataclass(frozen=True)
class Errors:
    """Element-wise errors of one batch, all tensors of one shape (N,).

    ulp: signed error in ULP, float64; meaningful where ``finite`` holds.
    absolute: ``|actual - y|``, float64, likewise.
    ulp_size: ``ulp_T(y)``, float64.
    classes: :class:`Class` codes, uint8.
    finite: where exact and actual are both finite, bool: the population of the ULP figures.
    bound: relative error bound of the exact values themselves; what is reported as a maximum adds
        ``bound · |y| / ulp_T(y)`` to it.
    """

    ulp: torch.Tensor
    absolute: torch.Tensor
    ulp_size: torch.Tensor
    classes: torch.Tensor
    finite: torch.Tensor
    bound: float

    def __len__(self) -> int:
        return self.ulp.numel()

    def select(self, mask: torch.Tensor) -> Errors:
        """Return the errors of the elements where ``mask`` holds."""
        return Errors(
            self.ulp[mask],
            self.absolute[mask],
            self.ulp_size[mask],
            self.classes[mask],
            self.finite[mask],
            self.bound,
        )


def measure(actual: torch.Tensor, exact: Exact, fmt: Format) -> Errors:
    """Compare ``actual`` (N,) of the format's dtype with the exact values.

    An infinity where a finite value is due is sized as ``±2^(emax+1)``; it is not in ``finite``.
    """
    got = actual.to(torch.float64)
    edge = fmt.largest if fmt.bits == 64 else 2.0 ** (fmt.emax + 1)
    sized = torch.where(torch.isinf(got), torch.copysign(torch.full_like(got, edge), got), got)
    ulp, absolute = exact.compare(sized, fmt)
    return Errors(
        ulp=ulp,
        absolute=absolute,
        ulp_size=exact.ulp_size(fmt),
        classes=classify(got, exact, fmt),
        finite=torch.isfinite(got) & torch.isfinite(exact.rounded(fmt).to(torch.float64)),
        bound=exact.relative_bound,
    )


def classify(got: torch.Tensor, exact: Exact, fmt: Format) -> torch.Tensor:
    """Return the :class:`Class` of every element, uint8 (N,), from ``got`` in float64."""
    y = exact.rounded(fmt).to(torch.float64)
    nan_due, infinite_due = torch.isnan(exact.high), torch.isinf(y)
    finite = torch.isfinite(got)
    both_zero = (got == 0) & (y == 0)
    # e4m3fn has no infinity: an overflow delivers NaN there, and that is what is due.
    nan_due = nan_due | torch.isnan(y)
    subnormal = (y != 0) & (y.abs() < fmt.smallest_normal)
    rules = (
        (Class.WRONG_ZERO_SIGN, both_zero & (torch.signbit(got) != torch.signbit(y))),
        (Class.FLUSHED_SUBNORMAL, (got == 0) & subnormal),
        (Class.COLLAPSE, (got == 0) & (y != 0) & ~subnormal),
        (Class.OPPOSITE_SIGN, (got * y.sign() < 0) & finite),
        (Class.LOST_INFINITY, infinite_due & (got != y) & ~torch.isnan(got)),
        (Class.INFINITY_FOR_FINITE, torch.isinf(got) & torch.isfinite(y)),
        (Class.NUMBER_FOR_NAN, nan_due & ~torch.isnan(got)),
        (Class.NAN_FOR_NUMBER, torch.isnan(got) & ~nan_due),
    )
    classes = torch.zeros(got.shape, dtype=torch.uint8, device=got.device)
    for code, mask in rules:
        classes.masked_fill_(mask, int(code))
    return classes


def steps(actual: torch.Tensor, exact: Exact, fmt: Format) -> torch.Tensor:
    """Return ``ord(actual) - ord(RN_T(y))`` as int64 (N,); for finite elements only."""
    return tensors.ordinals(actual, fmt) - tensors.ordinals(exact.rounded(fmt), fmt)
