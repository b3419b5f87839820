"""What the rows of an engine say, as a census: once a span, whatever it holds."""

from __future__ import annotations

from functools import cache

import numpy as np

from gelu_verify import contracts
from gelu_verify.contracts import ZeroSign
from gelu_verify.exhaustive import scattered
from gelu_verify.exhaustive.figures import (
    COLLAPSED,
    FLUSHED,
    NONE,
    OPPOSITE,
    SAMPLES,
    SETS,
    Column,
    Figures,
    Size,
)
from gelu_verify.exhaustive.limits import is_settled
from gelu_verify.exhaustive.measuring import Pass
from gelu_verify.exhaustive.spans import EPSILON, Span, Zone, spans
from gelu_verify.judge import Tally, Usage
from gelu_verify.measure.envelope import Spread
from gelu_verify.measure.error import Class
from gelu_verify.measure.regions import REGIONS
from gelu_verify.measure.summary import ClassTally, Sample, worse

_MAGNITUDE = 0x7FFF_FFFF
_UNSIGNED = 0xFFFF_FFFF
_ONE = 0x3F80_0000
_LEVELS = ("tail_accurate", "saturating", "cancelling", "approximation")
_CLASSES = {
    COLLAPSED: Class.COLLAPSE,
    FLUSHED: Class.FLUSHED_SUBNORMAL,
    OPPOSITE: Class.OPPOSITE_SIGN,
}
#: Kinds of rows that are no code of a region.
_MEASURED, _OF_NAN, _INFINITE = -1, -2, -3
_REASONS = [allowance.kind.value for allowance in contracts.get("approximation").allowances]


def add(general: Pass, figures: Figures) -> None:
    """Add rows of figures to the census of a pass."""
    _Settled(general, figures).add()


class _Settled:
    """Turns rows of figures into a census."""

    def __init__(self, general: Pass, figures: Figures) -> None:
        self.general, self.figures = general, figures
        self.census = general.census
        self.table = spans(general.formula, general.operator.derivative)
        self.contracts = general.contracts()
        self.settled = [c for c in self.contracts if is_settled(c)]
        self.totals = figures.counts.sum(axis=1).tolist()
        self.errors = self._errors()

    def _errors(self) -> np.ndarray:
        """Return the errors (S, SAMPLES) of the samples, measured by the reference on the CPU."""
        patterns = self.figures.integers[:, :SAMPLES]
        used = patterns < NONE
        used[:, Column.NAN_FIRST] = used[:, Column.ZERO_FIRST] = False
        errors = np.zeros(patterns.shape)
        errors[:, Column.NAN_FIRST] = np.nan
        errors[used] = scattered.errors(
            self.general.operator, self.general.formula, patterns[used], self.figures.results[used]
        )
        return errors

    def add(self) -> None:
        """Add all rows that hold any pattern."""
        for contract in self.contracts:
            self.census.tally(contract)
        inputs = self.figures.integers[:, Column.INPUTS]
        kinds = _kinds(self.general.formula, self.general.operator.derivative)
        self.census.summary.inputs += int(inputs.sum())
        self.census.nan_inputs += int(inputs[kinds == _OF_NAN].sum())
        self.census.summary.finite_inputs += int(inputs[kinds != _OF_NAN].sum())
        for row in np.flatnonzero((inputs > 0) & (kinds == _MEASURED)).tolist():
            self._row(row, self.table[row])
        settled = inputs - self.figures.integers[:, Column.NAN]
        for row in np.flatnonzero((settled > 0) & (kinds >= 0)).tolist():
            count = int(settled[row])
            region = self.census.summary.regions[REGIONS[kinds[row]]]
            region.count += count
            region.histogram[0] += count
            self.census.spread(self.table[row].binade).merge(Spread(count))
        self._reaches(kinds)
        self._flat()

    def _row(self, row: int, span: Span) -> None:
        integers = self.figures.integers[row].tolist()
        self._figures(row, span, integers)
        self._counts(row, integers)
        if any(integers[Column.SET_COUNT : Column.SET_COUNT + SETS]):
            self._sets(row, span, integers)
        if integers[Column.BACK]:
            self.census.reversals += integers[Column.BACK]
            size = float(self.figures.sizes[row, Size.BACK])
            sample = self._sample(row, Column.BACK_AT, size)
            self.census.worst_reversal = worse(self.census.worst_reversal, sample)

    def _figures(self, row: int, span: Span, integers: list[int]) -> None:
        assert span.region is not None
        region = self.census.summary.regions[span.region]
        region.histogram += self.figures.counts[row]
        region.count += self.totals[row]
        region.clipped += integers[Column.CLIPPED]
        signed = _whole(integers, Column.SIGNED_LOW)
        region.signed_sum += signed
        region.small_square_sum += _whole(integers, Column.SMALL_LOW)
        region.large_square_sum += _whole(integers, Column.LARGE_LOW)
        if self.totals[row]:
            low, high = (float(self.figures.sizes[row, s]) for s in (Size.LOWEST, Size.HIGHEST))
            spread = Spread.of(self.totals[row], signed, low, high)
            self.census.spread(span.binade).merge(spread)
        if self.figures.sizes[row, Size.WORST] < EPSILON:
            return
        sample = self._sample(row, Column.WORST_AT)
        region.worst = worse(region.worst, sample)
        found = worse(self.census.binades.get(span.binade), sample)
        assert found is not None
        self.census.binades[span.binade] = found

    def _reaches(self, kinds: np.ndarray) -> None:
        """Add how far from 0 a result is not yet the limit: 0 on the left, x or 1 on the right."""
        used = (self.figures.integers[:, Column.INPUTS] > 0) & (kinds != _OF_NAN)
        reach = np.where(used, self.figures.integers[:, Column.REACH], -1)
        right, left = reach[reach <= _MAGNITUDE], reach[reach > _MAGNITUDE]
        right = right[right >= 0]
        if right.size:
            self.census.identity_reach = max(self.census.identity_reach, int(right.max()))
        if left.size:
            self.census.zero_reach = max(self.census.zero_reach, int(left.max()) & _MAGNITUDE)

    def _counts(self, row: int, integers: list[int]) -> None:
        """Add the counts beyond 1/2 and 1 ULP to the contracts that need no more."""
        for contract in self.settled:
            rounding = contract.max_error_ulp == 0.5
            count = integers[Column.HALF if rounding else Column.ONE]
            if count == 0:
                continue
            first = self._sample(row, Column.HALF_FIRST if rounding else Column.ONE_FIRST)
            # The largest error breaks them, unless it is the 1/2 of a tie that was rounded well.
            beyond = self.figures.sizes[row, Size.WORST] > contract.max_error_ulp
            worst = self._sample(row, Column.WORST_AT) if beyond else first
            self.census.tally(contract).merge(Tally(contract, count, first, worst))

    def _flat(self) -> None:
        """Add what flat spans hold a billion times: +0 where -0 is due, and NaN.

        All of them have one error, so that the first of the first span that has any is the worst.
        """
        for cls, counted, column in (
            (Class.WRONG_ZERO_SIGN, Column.ZERO, Column.ZERO_FIRST),
            (Class.NAN_FOR_NUMBER, Column.NAN, Column.NAN_FIRST),
        ):
            counts = self.figures.integers[:, counted]
            count = int(counts.sum())
            if count == 0:
                continue
            sample = self._sample(int(np.flatnonzero(counts)[0]), column)
            seen = self.census.summary.classes.setdefault(cls, ClassTally())
            seen.merge(ClassTally(count, sample, sample))
            for contract in self.contracts:
                if cls is Class.NAN_FOR_NUMBER or contract.zero_sign is ZeroSign.STRICT:
                    self.census.tally(contract).merge(Tally(contract, count, sample, sample))

    def _sets(self, row: int, span: Span, integers: list[int]) -> None:
        """Add what is beyond 4 ULP to the built-in contracts of that limit, and to the classes.

        Each permits one more reason than the one before: what the n-th set holds breaks the first
        n of them, and holds the others by that reason only.
        """
        assert span.region is not None
        for number in range(SETS):
            count = integers[Column.SET_COUNT + number]
            if count == 0:
                continue
            first = self._sample(row, Column.SET_FIRST + number)
            worst = self._sample(row, Column.SET_WORST_AT + number)
            if number in _CLASSES:
                seen = self.census.summary.classes.setdefault(_CLASSES[number], ClassTally())
                seen.merge(ClassTally(count, first, worst))
                continue
            for name in _LEVELS[: number + 1]:
                contract = contracts.get(name)
                self.census.tally(contract).merge(Tally(contract, count, first, worst))
            if self.general.contract.name in _LEVELS[number + 1 :]:
                use = (_REASONS[number], span.region), Usage(count, worst)
                contract = self.general.contract
                self.census.tally(contract).merge(Tally(contract, usage=dict([use])))

    def _sample(self, row: int, column: int, error: float | None = None) -> Sample:
        pattern = int(self.figures.integers[row, column])
        inputs = (_ONE, pattern) if self.general.operator.derivative else (pattern,)
        got = int(self.figures.results[row, column]) & _UNSIGNED
        error = float(self.errors[row, column]) if error is None else error
        return Sample(inputs, got, error)


@cache
def _kinds(formula: str, derivative: int) -> np.ndarray:
    """Return, for the row of every span, the code of its region if it is flat, or what it is."""
    kinds = []
    for span in spans(formula, derivative):
        if span.zone in (Zone.SERIES, Zone.FULL):
            kinds.append(_MEASURED)
        elif span.region is None:
            kinds.append(_OF_NAN if span.zone is Zone.NAN else _INFINITE)
        else:
            kinds.append(REGIONS.index(span.region))
    return np.array(kinds)


def _whole(integers: list[int], low: Column) -> int:
    """Return a sum from its two parts."""
    return integers[low] + (integers[low + 1] << 32)
