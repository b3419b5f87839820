"""Rows whose exact sums tell in what a kernel multiplies and adds: bits counted, nothing assumed.

Every row has at most three terms that are not zero, every weight is the same power of two, and
every exact sum is 12 or 16: all formats hold it, and f(12) is far from f of what remains when the
term of interest was lost, so neither the activation nor the output's rounding hides anything.

- A sum keeps p bits: ``2^E + 12 - 2^E``. It is 12 for ``E <= p + 1``, 12 is half way between two
  neighbours at ``E = p + 2``, and at ``p + 3`` rounding to nearest gives 16 and truncation 0. What
  is added first depends on the order of the sum; so the three terms are put at many places
  (neighbours, strides of vector lanes, halves, far apart), and the fewest bits count.
- A product keeps p bits of x: ``(2^(j+4) + 16) - 2^(j+4)``, two terms, is 16 for ``j < p``.
- Partial sums are rounded every B terms: with ``2^15`` in front, 12 next and ``-2^15`` at place c,
  12 survives for ``c < B`` only.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import torch
from torch import Tensor

from gelu_verify.checks.fused.case import FusedCase
from gelu_verify.formats import Format
from gelu_verify.operators.fused import Multiplies

#: Takes float64 rows (M, K) and columns (N, K), gives f(rows·columnsᵀ) as float64 (M, N).
Multiply = Callable[[Tensor, Tensor], Tensor]

#: Every weight: fp16 holds 2^30 as 2^15·2^15 only.
_WEIGHT = 2.0**15
#: With this weight 2^20, which fp16 does not hold, gives 16.
_SMALL_WEIGHT = 2.0**-16
#: No multiple of a tile or a vector, and no matrix by vector.
_COLUMNS = 33
_SMALL, _LOW_BIT = 12.0, 16.0
#: Exponents of the large term: the least bits a sum is asked to keep are 5.
_FIRST_EXPONENT = 6
_TOP_EXPONENT = {64: 58, 32: 30, 16: 30}
#: fp16 loses 12 here, and still holds the large term.
_BLOCK_EXPONENT = 15
#: A sum that keeps fewer bits is rounded to a 16-bit format somewhere.
_NARROW_SUM = 16


@dataclass(frozen=True)
class SumBits:
    """Bits that a sum keeps: the fewest and the most over all places of its terms.

    truncates: how the fewest come about, None if it cannot be told.
    """

    least: int
    most: int
    truncates: bool | None


@dataclass(frozen=True)
class Reading:
    """What sums of length k show.

    x_bits, weight_bits: bits that a product keeps of either. wide_range: whether 2^20 survives.
    sums: None for K < 3, or where not even a few bits are kept. block: terms added before a partial
    sum of few bits is rounded, None if it is not or cannot be told.
    """

    k: int
    x_bits: int
    weight_bits: int
    wide_range: bool
    sums: SumBits | None
    block: int | None

    @property
    def product_bits(self) -> int:
        """Bits that a product keeps of both."""
        return min(self.x_bits, self.weight_bits)


def through(case: FusedCase, operator: Multiplies) -> Multiply:
    """Return the kernel as a product of matrices and an activation."""

    def multiply(left: Tensor, right: Tensor) -> Tensor:
        s = case.subject
        parts = (part.to(s.dtype).to(s.device) for part in (left, right))
        return case.call(operator.product(*parts)).detach().cpu().double()

    return multiply


def input_bits(multiply: Multiply, fmt: Format, k: int) -> int:
    """Return how many bits of a sole term reach the activation, of those the format shows."""
    return _product_bits(multiply, fmt, k, alone=True)


def read(multiply: Multiply, fmt: Format, k: int) -> Reading:
    """Count the bits that products and sums of length k keep."""
    sums = sum_bits(multiply, fmt, k) if k > 2 else None
    narrow = sums is not None and sums.least < _NARROW_SUM
    return Reading(
        k,
        _product_bits(multiply, fmt, k, alone=k == 1),
        _product_bits(lambda rows, columns: multiply(columns, rows).t(), fmt, k, alone=k == 1),
        reaches_far(multiply, fmt, k),
        sums,
        _block(multiply, k) if narrow else None,
    )


def _product_bits(multiply: Multiply, fmt: Format, k: int, *, alone: bool) -> int:
    rows, exact = [], []
    for j in range(1, fmt.precision):
        large = 2.0 ** (j + 4)
        rows.append({0: large + _LOW_BIT} | ({} if alone else {1: -large}))
        exact.append([sum(rows[-1].values())])
    error = (_results(multiply, rows, k) - torch.tensor(exact, dtype=torch.float64)).abs()
    return 1 + _leading((error < _LOW_BIT / 2).all(1))


def reaches_far(multiply: Multiply, fmt: Format, k: int) -> bool:
    """Tell whether an input of 2^20 survives where the format holds it: fp16 does not."""
    if fmt.largest < 2.0**20:
        return True
    left = torch.zeros(_COLUMNS, k, dtype=torch.float64)
    left[:, 0] = 2.0**20
    right = torch.full((_COLUMNS, k), _SMALL_WEIGHT, dtype=torch.float64)
    return bool(_near(multiply(left, right), _LOW_BIT).all())


def sum_bits(multiply: Multiply, fmt: Format, k: int) -> SumBits | None:
    """Count the bits that sums of length k > 2 keep; None where not even a few are kept."""
    exponents = range(_FIRST_EXPONENT, _TOP_EXPONENT[fmt.bits] + 1)
    places = _places(k)
    rows = [{a: 2.0**e, b: _SMALL, c: -(2.0**e)} for a, b, c in places for e in exponents]
    table = _results(multiply, rows, k).reshape(len(places), len(exponents), _COLUMNS)
    counts = [_leading(_near(part, _SMALL)) for part in table]
    if min(counts) == 0:
        return None
    fewest = min(counts)
    truncates = None
    if fewest + 1 < len(exponents):  # at E = p + 3, two beyond the last that was kept
        beyond = table[counts.index(fewest), fewest + 1]
        lost = beyond[~((beyond - _SMALL).abs() < 1.0)]  # columns can differ in order
        up, down = bool(_near(lost, 16.0)), bool(_near(lost, 0.0))
        truncates = down if up != down else None
    least, most = (_FIRST_EXPONENT + count - 2 for count in (fewest, max(counts)))
    return SumBits(least, most, truncates)


def _places(k: int) -> list[tuple[int, int, int]]:
    """Return places of the large term, the small one, and the large one's opposite, for K > 2."""
    last = k - 1
    middle = {b for b in (1, 2, 4, 8, 16, 32, 64, k // 2, k - 2) if 0 < b < last}
    back = {b for b in (1, k // 2, k - 2) if 0 < b < last}
    return sorted({(0, 1, 2), *((0, b, last) for b in middle), *((last, b, 0) for b in back)})


def _block(multiply: Multiply, k: int) -> int | None:
    """Return how many terms are added before a partial sum is rounded; None if it is not clear."""
    large = 2.0**_BLOCK_EXPONENT
    ends = _block_ends(k)
    rows = [{0: large, 1: _SMALL, c: -large} for c in ends]
    # In blocks of two 12 meets -2^15 first, alone.
    rows.append({1: large, 2: _SMALL, 3: -large} if k > 3 else rows[0])
    *kept, in_pairs = _near(_results(multiply, rows, k), _SMALL).tolist()
    count = _leading(kept)
    if any(kept[count:]) or count == len(kept):
        return None
    if count == 0:
        return 2 if in_pairs else 1
    return ends[count] if ends[count] == ends[count - 1] + 1 else None


def _block_ends(k: int) -> list[int]:
    """Return places for the term that ends a block: all to 130, then around likely lengths."""
    multiples = [m for step in (32, 256, max(k // 8, 1)) for m in range(step, 16 * step + 1, step)]
    around = {m + d for m in (*multiples, k) for d in (-1, 0, 1)}
    return sorted(c for c in around | set(range(2, 131)) if 2 <= c < k)


def _results(multiply: Multiply, rows: list[dict[int, float]], k: int) -> Tensor:
    """Return f of every row's sum, float64 (M, columns), for rows as place to term."""
    left = torch.zeros(len(rows), k, dtype=torch.float64)
    for index, row in enumerate(rows):
        for place, value in row.items():
            left[index, place] = value / _WEIGHT
    return multiply(left, torch.full((_COLUMNS, k), _WEIGHT, dtype=torch.float64))


def _near(results: Tensor, value: float) -> Tensor:
    """Return where every column is within 1 of ``value``; NaN and infinity are not."""
    return ((results - value).abs() < 1.0).all(-1)


def _leading(flags: Iterable[object]) -> int:
    """Return how many flags are true before the first that is not."""
    count = 0
    for flag in flags:
        if not flag:
            break
        count += 1
    return count
