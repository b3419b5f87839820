"""The 2^32 patterns of fp32, cut into spans where one way of measuring is right.

Most of fp32 is closed form, because GELU(x) is next to 0, x/2 or x there. With ε = 2^-21 ULP, half
the unit in which a summary adds errors, a span is *flat* where the exact value is so near to a
number of the format that the error of that number is below ε:

- flat zero: x <= -L, |f(x)| < ε · (smallest subnormal). f falls in magnitude to the left (see
  ``reference.thresholds``, point 1), so the border decides for all beyond it.
- flat identity: x >= R, x - f(x) = -f(-x) < ε·ulp(x)/2 (the half because ulp halves at a power of
  two). -f(-x) falls and ulp(x) grows to the right. Derivative: f'(x) - 1 = -f'(-x), ulp(1).
- flat half: 2^-125 <= |x| < H, where f(x) = x/2 + x²·f''(0)/2 + ..., and x/2 is a number of the
  format; the second term is |x|·f''(0) relative to the first, so 2^24·|x|·f''(0) < ε/2 is enough,
  the half covering the terms after it. Derivative: f'(x) = 1/2 + f''(0)·x + ..., likewise.

Between, ``series`` spans (|x| < 2^-12, and |x| < 2^-125, where x/2 may fall between two subnormals)
use the Taylor series, and ``full`` spans the fast reference.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from itertools import pairwise

import mpmath

from gelu_verify import formats
from gelu_verify.measure.regions import REGIONS, TINY_BELOW, Region, Regions
from gelu_verify.reference import oracle

FP32 = formats.get("fp32")
PATTERNS = 1 << 32
_SIGN = FP32.sign_bit
_BINADE = 1 << 23
#: Half the unit of a summary's signed sum, in ULP.
EPSILON = 2.0**-21


class Zone(StrEnum):
    """How the exact values of a span are known."""

    FLAT_ZERO = "flat zero"
    FLAT_IDENTITY = "flat identity"
    FLAT_HALF = "flat half"
    SERIES = "series"
    FULL = "full"
    INFINITE = "infinite"
    NAN = "nan"


@dataclass(frozen=True)
class Span:
    """Patterns ``start`` to ``stop - 1``, of one sign, zone, region and binade of x."""

    start: int
    stop: int
    zone: Zone
    region: Region | None

    @property
    def negative(self) -> bool:
        """Whether the sign bit is set."""
        return self.start >= _SIGN

    @property
    def binade(self) -> int:
        """Sign and exponent fields of the patterns: which binade of x this is."""
        return self.start >> 23

    def clipped(self, start: int, stop: int) -> Span | None:
        """Return the part of the span within [start, stop), None if there is none."""
        low, high = max(self.start, start), min(self.stop, stop)
        return Span(low, high, self.zone, self.region) if low < high else None


@cache
def spans(formula: str, derivative: int) -> tuple[Span, ...]:
    """Return the spans of one function, ascending and without gaps from 0 to 2^32."""
    zones = _zones(formula, derivative)
    regions = Regions.of(formula, FP32, derivative)
    cuts = {0, _SIGN, PATTERNS, FP32.infinity_bits, FP32.infinity_bits + 1}
    cuts |= {_SIGN + FP32.infinity_bits, _SIGN + FP32.infinity_bits + 1}
    cuts |= set(range(0, PATTERNS + 1, _BINADE))
    magnitudes = [limit for limit, _ in zones[0] + zones[1]]
    magnitudes += [FP32.encode(TINY_BELOW)]
    for magnitude in magnitudes:
        cuts |= {magnitude, _SIGN + magnitude}
    cuts.add(_SIGN + 1)  # -0, where the exact derivative is 1/2 itself, stands alone
    # Where GELU turns from falling to rising: its minimum lies between this pattern and the next.
    cuts.add(turning_pattern(formula) + 1)
    for border in regions.borders():
        bits = FP32.round(mpmath.mpf(border), negative_zero=border < 0)
        # Some regions are open at a border, others closed: the pattern itself stands alone.
        cuts |= {bits, bits + 1}
    ordered = sorted(cuts)
    return tuple(
        Span(start, stop, _zone_of(start, zones), _region_of(start, regions))
        for start, stop in pairwise(ordered)
    )


@cache
def turning_pattern(formula: str) -> int:
    """Return the pattern of the smallest |x|, x < 0, at which GELU has not yet begun to rise.

    In the order of patterns (x falling) GELU falls up to this one and rises from the next on.
    """
    lowest = oracle.minimum(formula)[0]
    nearest = FP32.round(lowest)
    return nearest if FP32.decode(nearest) >= lowest else nearest - 1


def within(formula: str, derivative: int, start: int, stop: int) -> Iterator[Span]:
    """Yield the spans of the patterns from ``start`` to ``stop - 1``, clipped to them."""
    table = spans(formula, derivative)
    for row in range(bisect_right(table, start, key=lambda span: span.start) - 1, len(table)):
        part = table[row].clipped(start, stop)
        if part is None:
            return
        yield part


_Limits = list[tuple[int, Zone]]


@cache
def _zones(formula: str, derivative: int) -> tuple[_Limits, _Limits]:
    """Return, for x >= 0 and x < 0, the magnitude patterns below which each zone ends."""
    curvature = oracle.value(formula, 0.0, derivative=2)
    half_until = FP32.round(mpmath.mpf(EPSILON) / 2 / 2**24 / curvature) - 1
    inner = [
        (FP32.encode(2.0**-125), Zone.SERIES),
        (half_until, Zone.FLAT_HALF),
        (FP32.encode(TINY_BELOW), Zone.SERIES),
    ]
    right = _first(lambda bits: _identity_is_flat(formula, derivative, bits))
    left = _first(lambda bits: _zero_is_flat(formula, derivative, bits))
    return (
        [*inner, (right, Zone.FULL), (FP32.infinity_bits, Zone.FLAT_IDENTITY)],
        [*inner, (left, Zone.FULL), (FP32.infinity_bits, Zone.FLAT_ZERO)],
    )


def _zone_of(start: int, zones: tuple[_Limits, _Limits]) -> Zone:
    magnitude = start & (_SIGN - 1)
    if magnitude >= FP32.infinity_bits:
        return Zone.INFINITE if magnitude == FP32.infinity_bits else Zone.NAN
    return next(zone for limit, zone in zones[start >= _SIGN] if magnitude < limit)


def _region_of(start: int, regions: Regions) -> Region | None:
    import torch

    x = FP32.decode(start)
    if not math.isfinite(x):
        return None
    return REGIONS[int(regions.codes(torch.tensor([x], dtype=torch.float64))[0])]


def _identity_is_flat(formula: str, derivative: int, bits: int) -> bool:
    x = FP32.decode(bits)
    distance = abs(oracle.value(formula, -x, derivative=derivative, bits=64))
    unit = FP32.ulp(mpmath.mpf(x if derivative == 0 else 1.0)) / 2
    return bool(distance < EPSILON * unit)


def _zero_is_flat(formula: str, derivative: int, bits: int) -> bool:
    size = abs(oracle.value(formula, -FP32.decode(bits), derivative=derivative, bits=64))
    return bool(size < EPSILON * mpmath.mpf(FP32.smallest_subnormal))


def _first(holds: object) -> int:
    """Return the first magnitude pattern from 2 on, on a grid of 2^-4 binades, that holds."""
    low, high = FP32.encode(2.0), FP32.encode(2.0**20)
    while high - low > 1 << 19:
        middle = (low + high) // 2
        low, high = (low, middle) if holds(middle) else (middle, high)  # type: ignore[operator]
    return high
