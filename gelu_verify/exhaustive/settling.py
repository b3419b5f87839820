"""The measuring pass with an engine: what its rows and its selected elements say, as a census.

An engine does what is the same for every element; here is what happens once a span, and for the few
elements that have to be judged by themselves. Anything unforeseen in a flat span, and infinite
inputs, go through the general :class:`~gelu_verify.exhaustive.measuring.Pass`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
import torch

from gelu_verify import contracts
from gelu_verify.contracts import BUILT_IN, AllowanceKind, Contract, ZeroSign
from gelu_verify.exhaustive import scattered
from gelu_verify.exhaustive.block import Results
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
from gelu_verify.exhaustive.inputs import consecutive_bits
from gelu_verify.exhaustive.measuring import OPEN, Pass
from gelu_verify.exhaustive.scattered import Scattered
from gelu_verify.exhaustive.spans import EPSILON, FP32, Span, Zone, spans, turning_pattern
from gelu_verify.judge import ZERO_BELOW, Elements, Tally, Usage, permitted
from gelu_verify.measure.error import Class
from gelu_verify.measure.summary import ClassTally, Sample, worse

_MAGNITUDE = 0x7FFF_FFFF
_UNSIGNED = 0xFFFF_FFFF
_ONE = 0x3F80_0000
_MARGIN = 1e-7
_LEVELS = ("tail_accurate", "saturating", "cancelling", "approximation")
_GUARD, _CANCELLATION, _ = contracts.get("approximation").allowances
_CLASSES = {
    COLLAPSED: Class.COLLAPSE,
    FLUSHED: Class.FLUSHED_SUBNORMAL,
    OPPOSITE: Class.OPPOSITE_SIGN,
}
_REASONS = [allowance.kind.value for allowance in contracts.get("approximation").allowances]
#: Elements collected before they are judged: judging a few costs as much as judging thousands.
_COLLECTED = 1 << 15
#: Fewer elements than this are measured faster on the CPU than on a GPU.
_FEW = 1 << 16


@dataclass(frozen=True)
class Limits:
    """From where on an engine selects elements, which are then judged by themselves.

    select_from: error; infinite where the sets of the figures say all. back_from, back_slack: a
    step back beyond the first (ULP) and beyond the second times ``|x|`` is selected. open_width:
    half the width (ULP) around 1/2, 1 and 4 ULP in which the reference leaves a verdict open.
    """

    select_from: float
    back_from: float
    back_slack: float
    open_width: float = OPEN

    def numbers(self, formula: str) -> list[float]:
        """Return them as engines take them, with threshold, unit and far left of the sets."""
        far = [ZERO_BELOW[name][0] for name in (formula, "tanh")]
        return [
            *(self.select_from, self.back_from, self.back_slack),
            *(_GUARD.threshold, FP32.arithmetic_unit * _CANCELLATION.factor, *far),
            self.open_width,
        ]


@dataclass(frozen=True)
class Leftovers:
    """What an engine did not settle of a call: ranges to be measured the general way, of which its
    rows hold nothing, and selected elements, of which its rows hold the error figures.
    """

    ranges: list[tuple[int, int]]
    selected: Iterable[Scattered]


class Engine(Protocol):
    """Measures the calls of one function and adds to rows of figures."""

    name: str

    def measure(self, first: int, actual: torch.Tensor, lead: int) -> Leftovers:
        """Add results (N,), the first ``lead`` (0 or 1) of which only precede the patterns."""

    def take(self) -> Figures:
        """Return the rows and begin anew."""


def runs(starts: np.ndarray, stops: np.ndarray) -> list[tuple[int, int]]:
    """Return ascending ranges with those that touch joined."""
    breaks = np.flatnonzero(starts[1:] != stops[:-1]) + 1
    edges = zip(np.split(starts, breaks), np.split(stops, breaks), strict=True)
    return [(int(first[0]), int(last[-1])) for first, last in edges if len(first)]


@dataclass(frozen=True)
class EnginePass:
    """A pass whose figures come from an engine; ``general`` holds function, contract and census."""

    general: Pass
    engine: Engine
    collected: list[Scattered] = field(default_factory=list)

    def add(self, first: int, actual: torch.Tensor, lead: int) -> None:
        """Add results (N,), the first ``lead`` (0 or 1) of which only precede the patterns.

        first: the first pattern to be added.
        """
        actual = actual.contiguous()
        left = self.engine.measure(first, actual, lead)
        low = first - lead
        for start, stop in left.ranges:
            self.general.add(start, _results(low, actual, start, stop))
        for part in left.selected:
            self.collected.append(part)
            if sum(map(len, self.collected)) >= _COLLECTED:
                self._judge_collected()

    def finish(self) -> None:
        """Add all that the engine holds to the census: to be called after the last results."""
        self._judge_collected()
        _Settled(self.general, self.engine.take()).add()

    def _judge_collected(self) -> None:
        if not self.collected:
            return
        part = scattered.joined(self.collected)
        self.collected.clear()
        if len(part) < _FEW:
            part = part.on_cpu()
        for tiny, members in part.by_reference():
            self._judge(part.at(members), tiny)

    def _judge(self, part: Scattered, tiny: bool) -> None:
        elements = scattered.elements(self.general.operator, self.general.formula, tiny, part)
        batch = scattered.batch(elements)
        self.general.add_classes(batch)
        self.general.judge_all(elements, batch)
        if self.general.operator.derivative == 0:
            self._reversals(part, elements)

    def _reversals(self, part: Scattered, elements: Elements) -> None:
        """Count the results that step back by more than the contract permits."""
        patterns = part.bits.long() & _UNSIGNED
        falling = (part.bits < 0) & (patterns <= turning_pattern(self.general.formula))
        step = part.actual.double() - part.before.double()
        back = torch.where(falling, step, -step)
        is_back = (back > 0.0) & (back < torch.inf)
        limit = _back_from(self.general.contract) * elements.errors.ulp_size
        is_open = is_back & (back > limit)
        if bool(is_open.any()):
            slack = 2 * permitted(self.general.contract, elements.select(is_open))
            self.general.census.reversals_broken += int((back[is_open] > slack).sum())


def limits_of(general: Pass) -> Limits:
    """Return from where on an engine selects, for the contracts that are judged.

    A step back is within the contract of both neighbours up to twice what it permits, of which the
    limit and the slack of cancellation are parts. A little less, because the judge has the say.
    """
    contract = general.contract
    judged = [c for c in general.contracts() if c not in BUILT_IN and not _is_settled(c)]
    cancellation = contract.allowance(AllowanceKind.CANCELLATION)
    unit = FP32.arithmetic_unit * cancellation.factor if cancellation else 0.0
    return Limits(
        min((c.max_error_ulp - OPEN for c in judged), default=math.inf),
        _back_from(contract) * (1 - _MARGIN),
        2 * unit * (1 - _MARGIN),
    )


def _back_from(contract: Contract) -> float:
    """Return the step in ULP that two neighbours within the limit cannot exceed."""
    return 2.0 * contract.max_error_ulp if contract.max_error_ulp > 0.5 else 0.0


def _is_settled(contract: Contract) -> bool:
    """Tell whether the counts beyond 1/2 or 1 ULP say which errors break a contract."""
    return Pass.is_plain(contract) and (
        contract.max_error_ulp == 0.5 or abs(contract.max_error_ulp - 1.0) < OPEN / 2
    )


def _results(low: int, actual: torch.Tensor, start: int, stop: int) -> Results:
    """Return the results for patterns [start, stop) of results that begin at pattern ``low``."""
    ordered = start > low and start % (1 << 31)
    before = float(actual[start - low - 1]) if ordered else None
    part = actual[start - low : stop - low]
    if stop - start < _FEW:
        part = part.cpu()
    return Results(consecutive_bits(start, stop - start, part.device), part, before)


class _Settled:
    """Turns rows of figures into a census."""

    def __init__(self, general: Pass, figures: Figures) -> None:
        self.general, self.figures = general, figures
        self.census = general.census
        self.table = spans(general.formula, general.operator.derivative)
        self.contracts = general.contracts()
        self.settled = [c for c in self.contracts if _is_settled(c)]
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
            self.general.tally(contract)
        for row in np.flatnonzero(self.figures.integers[:, Column.INPUTS]).tolist():
            self._row(row, self.table[row])

    def _row(self, row: int, span: Span) -> None:
        integers = self.figures.integers[row].tolist()
        self.census.summary.inputs += integers[Column.INPUTS]
        if span.zone is Zone.NAN:
            self.census.nan_inputs += integers[Column.INPUTS]
            return
        self.census.summary.finite_inputs += integers[Column.INPUTS]
        self._figures(row, span, integers)
        self._reach(span, integers[Column.REACH])
        self._counts(row, span, integers)
        if integers[Column.ZERO] or integers[Column.NAN]:
            self._flat(row, integers)
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
        counts = self.figures.counts[row]
        if span.zone not in (Zone.SERIES, Zone.FULL):
            settled = integers[Column.INPUTS] - integers[Column.NAN]
            region.count += settled
            region.histogram[0] += settled
            return
        region.histogram += counts
        region.count += self.totals[row]
        region.clipped += integers[Column.CLIPPED]
        region.signed_sum += _whole(integers, Column.SIGNED_LOW)
        region.small_square_sum += _whole(integers, Column.SMALL_LOW)
        region.large_square_sum += _whole(integers, Column.LARGE_LOW)
        if self.figures.sizes[row, Size.WORST] < EPSILON:
            return
        sample = self._sample(row, Column.WORST_AT)
        region.worst = worse(region.worst, sample)
        found = worse(self.census.binades.get(span.binade), sample)
        assert found is not None
        self.census.binades[span.binade] = found

    def _reach(self, span: Span, reach: int) -> None:
        if reach < 0:
            return
        if span.negative:
            self.census.zero_reach = max(self.census.zero_reach, reach & _MAGNITUDE)
        else:
            self.census.identity_reach = max(self.census.identity_reach, reach)

    def _counts(self, row: int, span: Span, integers: list[int]) -> None:
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
            self.general.tally(contract).merge(Tally(contract, count, first, worst))

    def _flat(self, row: int, integers: list[int]) -> None:
        """Add what flat spans hold a billion times: +0 where -0 is due, and NaN."""
        for cls, count, column in (
            (Class.WRONG_ZERO_SIGN, integers[Column.ZERO], Column.ZERO_FIRST),
            (Class.NAN_FOR_NUMBER, integers[Column.NAN], Column.NAN_FIRST),
        ):
            if count == 0:
                continue
            sample = self._sample(row, column)
            seen = self.census.summary.classes.setdefault(cls, ClassTally())
            seen.merge(ClassTally(count, sample, sample))
            for contract in self.contracts:
                if cls is Class.NAN_FOR_NUMBER or contract.zero_sign is ZeroSign.STRICT:
                    self.general.tally(contract).merge(Tally(contract, count, sample, sample))

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
                self.general.tally(contract).merge(Tally(contract, count, first, worst))
            if self.general.contract.name in _LEVELS[number + 1 :]:
                use = (_REASONS[number], span.region), Usage(count, worst)
                contract = self.general.contract
                self.general.tally(contract).merge(Tally(contract, usage=dict([use])))

    def _sample(self, row: int, column: int, error: float | None = None) -> Sample:
        pattern = int(self.figures.integers[row, column])
        inputs = (_ONE, pattern) if self.general.operator.derivative else (pattern,)
        got = int(self.figures.results[row, column]) & _UNSIGNED
        error = float(self.errors[row, column]) if error is None else error
        return Sample(inputs, got, error)


def _whole(integers: list[int], low: Column) -> int:
    """Return a sum from its two parts."""
    return integers[low] + (integers[low + 1] << 32)
