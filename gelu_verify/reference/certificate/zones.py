"""How the 2^32 patterns of fp32 divide into zones, and what is proven in each.

Let q(a) be the fast tail at a = |x| (``tails``), u = 2^-53, f the formula, f' its derivative. The
bound is the one that :mod:`gelu_verify.reference.fast` states for ``|exact| >= 2^-1000``.

Enumerated, every input on its own (method ``taylor``, see :mod:`.taylor`):

- ``tiny``: 2^-60 <= a < 2^-26, where fp32 rounds f to x/2 and f' to 1/2;
- ``nontrivial``: from 2^-26 to the thresholds of :mod:`gelu_verify.reference.thresholds`: the part
  of fp32 in which the rounded result is not in closed form;
- ``left_tail``: x < 0, from the zero threshold out to the last input with ``|exact| >= 2^-1000``
  (|exact| falls strictly there, ``thresholds`` 1 and 2, so bisection finds that input);
- ``saturated``: x > 0, from the identity threshold up to 512.

Enumerated, for size and sign only (method ``size``): ``underflow``, x < 0, beyond ``left_tail`` to
-512. There 0 < -exact < 2^-1000; the result must lie in [-2^-1000·(1 + 2^-40), -0], minus sign
included: the float64 result carries no relative bound here, and fp32 rounds both to -0.

In closed form (method ``proof``), with the border values and samples evaluated at every run:

- ``vanishing``, 0 < a < 2^-60. Exact: |f/(x/2) - 1| and |2f' - 1| are below 4a <= 2^-58 = u/32 (the
  slope of f/x is f''(0)/2 < 0.43 at 0, falling; f'' <= 0.86). The reference: a is below a quarter
  ULP of 1, 4, a0 and 1/2, so a + 4, 3a/4 + 1, s - 1, a0 - a, 1/2 + s·P are 4, 1, -1, a0, 1/2, the
  same numbers for every such a (|s·P(-1)| < a); the only factor that may move is exp of an argument
  in (-2^-58, 0], which is within 2u of 1. Hence q and d are 1/2 within the bounds of ``tails``
  (logistic d: exactly 1/2 by ``masked_fill_``), and ``fast`` adds its 1u: the stated bound holds.
- ``far``, 512 <= a < ∞. The reference clamps a to 512, where q and d underflow: q = 0, d = -0, one
  value that is evaluated. Hence f = x·|1 - 0| = x and f' = 1 - (-0) = 1 for x > 0, and -0 for
  x < 0. Exact: Φ(-512) < 2^-180000 and σ(-1.702·512) < 2^-1250 (``tanh``: far less), so with
  a < 2^128 the distance to x, 1 and 0 is below 2^-1000.
- ``zero`` (±0), ``infinite`` (±∞): evaluated, all four; x, 1/2 or the limit, sign included.
- ``nan``: 2^24 - 2 patterns. abs, clamp, add, multiply, divide, exp and expm1 keep NaN, and so does
  each branch of ``where``; the smallest and largest patterns of both signs are evaluated.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

from gelu_verify import formats
from gelu_verify.reference import oracle
from gelu_verify.reference.thresholds import thresholds

FP32 = formats.get("fp32")
#: Inputs a shard, at most: a shard lies in one binade, so that centres of blocks are exact.
SHARD = 1 << 22
#: Below 2^-1000 the reference states no relative error.
SMALLEST_EXPONENT = -1000

_VANISHING = FP32.encode(2.0**-60)
_TINY = FP32.encode(2.0**-26)
_FAR = FP32.encode(512.0)


@dataclass(frozen=True)
class Zone:
    """Inputs of one sign whose magnitude bits lie in [first, stop).

    method: ``taylor``, ``size`` or ``proof``.
    """

    name: str
    method: str
    negative: bool
    first: int
    stop: int

    @property
    def count(self) -> int:
        """How many inputs the zone holds."""
        return self.stop - self.first

    @property
    def side(self) -> str:
        """``negative`` or ``positive``."""
        return "negative" if self.negative else "positive"


@dataclass(frozen=True, order=True)
class Shard:
    """A part of an enumerated zone: the unit of work, of the ledger and of the result."""

    formula: str
    order: int
    zone: str
    method: str
    negative: bool
    first: int
    stop: int

    @property
    def function(self) -> str:
        """Name of the function, ``erf:0`` for the formula's value, ``erf:1`` for its derivative."""
        return f"{self.formula}:{self.order}"


@cache
def zones(formula: str, order: int) -> tuple[Zone, ...]:
    """Return the zones of a function; their counts add up to 2^32."""
    zero, identity = thresholds(formula, FP32, order)
    left, right, last = FP32.encode(-zero), FP32.encode(identity), _underflow(formula, order)
    infinity = FP32.infinity_bits
    negative = (
        ("zero", "proof", 1),
        ("vanishing", "proof", _VANISHING),
        ("tiny", "taylor", _TINY),
        ("nontrivial", "taylor", left),
        ("left_tail", "taylor", last),
        ("underflow", "size", _FAR),
        ("far", "proof", infinity),
        ("infinite", "proof", infinity + 1),
        ("nan", "proof", 1 << 31),
    )
    positive = (*negative[:3], ("nontrivial", "taylor", right), ("saturated", "taylor", _FAR))
    result = [*_stacked(negative, True), *_stacked((*positive, *negative[6:]), False)]
    return tuple(result)


def shards(formula: str, order: int) -> list[Shard]:
    """Return the shards of every enumerated zone of a function, ascending."""
    return [
        Shard(formula, order, zone.name, zone.method, zone.negative, first, stop)
        for zone in zones(formula, order)
        if zone.method != "proof"
        for first, stop in _cut(zone.first, zone.stop)
    ]


def point(bits: int, negative: bool) -> float:
    """Return the fp32 number with the given magnitude bits."""
    return FP32.decode(bits | (FP32.sign_bit if negative else 0))


def _stacked(parts: tuple[tuple[str, str, int], ...], negative: bool) -> Iterator[Zone]:
    first = 0
    for name, method, stop in parts:
        yield Zone(name, method, negative, first, stop)
        first = stop


def _cut(first: int, stop: int) -> Iterator[tuple[int, int]]:
    while first < stop:
        end = min(stop, (first // SHARD + 1) * SHARD)
        yield first, end
        first = end


def _underflow(formula: str, order: int) -> int:
    """Return the magnitude bits of the first x < 0 with ``|exact| < 2^-1000``, by bisection."""
    low, high = FP32.encode(2.0), _FAR
    while low < high:
        middle = (low + high) // 2
        exact = oracle.value(formula, point(middle, True), derivative=order, bits=64)
        if abs(exact) < 2.0**SMALLEST_EXPONENT:
            high = middle
        else:
            low = middle + 1
    return low
