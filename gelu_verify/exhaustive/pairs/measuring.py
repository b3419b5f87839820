"""The measuring pass over pairs: figures from an engine, classes and verdicts from the judge."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import torch

from gelu_verify.contracts import BUILT_IN, Contract, Subnormals, ZeroSign, beside_built_in
from gelu_verify.elements import Elements
from gelu_verify.exhaustive.census import Census
from gelu_verify.exhaustive.pairs import cpu
from gelu_verify.exhaustive.pairs.figures import PLAIN_LIMITS, Figures, Limits
from gelu_verify.exhaustive.pairs.reference import OPEN, PATTERNS, PairReference
from gelu_verify.formats import tensors
from gelu_verify.judge import Tally, judge
from gelu_verify.measure.error import Class, Errors, measure
from gelu_verify.measure.regions import REGIONS
from gelu_verify.measure.summary import Batch, ClassTally, RegionSummary, Sample

#: Flagged elements judged at once: as many as there are, as a judgement is many small launches.
_BATCH = {"cpu": 1 << 16, "cuda": 1 << 24}
#: Up to this many are judged on a CPU, which is faster than to launch.
_FEW = 1 << 12


@dataclass(frozen=True)
class PairPass:
    """One operator of two 16-bit arguments under one contract, and the census of its results.

    waiting: flagged elements that ``finish`` judges.
    """

    reference: PairReference
    contract: Contract
    census: Census
    waiting: list[_Pairs] = field(default_factory=list)

    def add(self, first: int, actual: torch.Tensor) -> None:
        """Add results (R, 65536) for the rows of the first argument from pattern ``first`` on.

        What needs judging may wait for :meth:`finish`.
        """
        assert actual.shape[1] == PATTERNS, "a row is all patterns of the second argument"
        limits = Limits.of(self.reference.fmt, self._flag_from())
        if actual.is_cuda:
            from gelu_verify.exhaustive.pairs import gpu

            for start, part, figures in gpu.measured(self.reference, limits, first, actual):
                self._merge(start, part, figures)
            return
        self._merge(first, actual, cpu.measured(self.reference, limits, first, actual))

    def _merge(self, first: int, actual: torch.Tensor, figures: Figures) -> None:
        rows = _Rows(self.reference, first, actual)
        self._count_inputs(first, actual.shape[0], figures)
        self._regions(rows, figures)
        self._wrong_zeros(rows, figures)
        self._plain(rows, figures)
        for part in figures.flagged.split(_BATCH[actual.device.type]):
            waiting = sum(len(pairs) for pairs in self.waiting)
            if waiting + part.numel() > _BATCH[actual.device.type]:
                self.finish()
            if part.numel():
                self.waiting.append(rows.pairs(part))

    def finish(self) -> None:
        """Judge what waits; the census is complete then."""
        if not self.waiting:
            return
        numbers = torch.cat([pairs.numbers for pairs in self.waiting])
        actual = torch.cat([pairs.actual for pairs in self.waiting])
        self.waiting.clear()
        ref = self.reference
        if numbers.numel() <= _FEW and numbers.is_cuda:
            numbers, actual, ref = numbers.cpu(), actual.cpu(), ref.on_cpu()
        self._flagged(_Pairs(ref, numbers, actual))

    def _count_inputs(self, first: int, count: int, figures: Figures) -> None:
        census = self.census
        census.summary.inputs += count * PATTERNS
        census.summary.finite_inputs += figures.finite
        values = self.reference.values
        nan, infinite = self.reference.fmt.nan_count, 2
        own = values[first : first + count]
        nan_rows, infinite_rows = int(torch.isnan(own).sum()), int(torch.isinf(own).sum())
        census.nan_inputs += nan_rows * PATTERNS + (count - nan_rows) * nan
        others = count - nan_rows - infinite_rows
        census.infinite_inputs += infinite_rows * (PATTERNS - nan) + others * infinite

    def _regions(self, rows: _Rows, figures: Figures) -> None:
        for code, region in enumerate(REGIONS):
            count, signed, small, large = (int(number) for number in figures.sums[code])
            if count:
                at, largest = int(figures.largest_at[code]), float(figures.largest[code])
                known = self.census.summary.regions[region].worst
                worst = rows.sample_above(known, at, largest)
                clipped, bins = int(figures.clipped[code]), figures.histogram[code].copy()
                part = RegionSummary(count, clipped, signed, small, large, worst, bins)
                self.census.summary.regions[region].merge(part)

    def _wrong_zeros(self, rows: _Rows, figures: Figures) -> None:
        for judged in range(2):
            count, first, worst = (int(number) for number in figures.zeros[:, judged])
            if count == 0:
                continue
            sample = rows.sample(worst, float(figures.zero_worst[judged]))
            if judged == 0:
                seen = self.census.summary.classes.setdefault(Class.WRONG_ZERO_SIGN, ClassTally())
                seen.merge(ClassTally(count, rows.sample(first), sample))
                continue
            for contract in beside_built_in(self.contract):
                if contract.zero_sign is not ZeroSign.STRICT:
                    continue
                if contract != self.contract and not self._is_plain(contract):
                    self.census.broken.add(contract.name)
                    continue
                found = Tally(contract, count, rows.sample(first), sample)
                self.census.tally(contract).merge(found)

    def _plain(self, rows: _Rows, figures: Figures) -> None:
        """Add what is beyond 1/2 and 1 ULP to the contracts that need to know no more."""
        for contract in beside_built_in(self.contract):
            if contract == self.contract:
                self.census.tally(contract)
            if not self._is_plain(contract):
                continue
            place = PLAIN_LIMITS.index(contract.max_error_ulp)
            count, index = int(figures.beyond[place]), int(figures.beyond_first[place])
            tally = self.census.tally(contract)
            if count == 0:
                continue
            largest = float(figures.largest.max())
            at = int(figures.largest_at[figures.largest == largest].min())
            first = rows.sample_before(tally.first, index)
            worst = rows.sample_above(tally.worst, at, largest)
            tally.merge(Tally(contract, count, first, worst))

    def _flagged(self, pairs: _Pairs) -> None:
        elements, batch = pairs.elements(), pairs.batch()
        # Zeros of the wrong sign were counted by the engine, and are flagged next to a limit only.
        chosen = elements.errors.classes != int(Class.WRONG_ZERO_SIGN)
        if not bool(chosen.all()):
            elements, batch = elements.select(chosen), batch.select(chosen)
        if len(elements.errors) == 0:
            return
        self.census.summary.add_classes(batch)
        self._judge(elements, batch, pairs.reference)

    def _judge(self, elements: Elements, batch: Batch, reference: PairReference) -> None:
        """Judge flagged elements: fully by the kernel's own contract, by the others to see whether
        they would hold. What holds one contract holds every looser built-in one.
        """
        left = torch.ones(len(elements.errors), dtype=torch.bool, device=elements.actual.device)
        _, certain = reference.places(batch.inputs[0], batch.inputs[1])
        for contract in beside_built_in(self.contract):
            is_plain = self._is_plain(contract)
            if not is_plain and contract != self.contract and self._settled(contract):
                continue
            # Those with an error beyond a plain limit were counted by the engine.
            chosen = ~_counted(contract, elements.errors, certain) if is_plain else left
            if contract == self.contract and not is_plain:
                chosen = torch.ones_like(left)
            members = chosen.nonzero().flatten()
            if members.numel() == 0:
                continue
            verdicts = judge(contract, elements.select(members))
            if is_plain or contract == self.contract:
                # Which elements need which allowance is recorded.
                self.census.tally(contract).add(verdicts, batch.select(members))
            elif bool(verdicts.broken.any()):
                self.census.broken.add(contract.name)
            if contract in BUILT_IN and not is_plain:
                left[members[~verdicts.broken]] = False

    def _settled(self, contract: Contract) -> bool:
        return contract.name in self.census.broken

    def _flag_from(self) -> float:
        """Return the error from which an element is judged."""
        looser = [c for c in beside_built_in(self.contract) if not self._is_plain(c)]
        return min(contract.max_error_ulp for contract in looser) - OPEN

    @staticmethod
    def _is_plain(contract: Contract) -> bool:
        """Tell whether an error beyond a plain limit breaks a contract whatever else is true."""
        return (
            contract.max_error_ulp in PLAIN_LIMITS
            and not contract.allowances
            and not contract.rounded_intermediate
            and contract.zero_sign is ZeroSign.STRICT
            and contract.subnormals is Subnormals.IEEE
        )


def _counted(contract: Contract, errors: Errors, certain: torch.Tensor) -> torch.Tensor:
    """Return which elements the engine counted as beyond a plain limit, or found within it."""
    is_open = (errors.ulp.abs() - contract.max_error_ulp).abs() <= OPEN
    return errors.finite & (certain | ~is_open)


@dataclass(frozen=True)
class _Pairs:
    """Some pairs and a kernel's results (N,); a pair's number is ``first pattern·65536 + second``,
    int64.
    """

    reference: PairReference
    numbers: torch.Tensor
    actual: torch.Tensor

    def __len__(self) -> int:
        return self.numbers.numel()

    @cached_property
    def patterns(self) -> tuple[torch.Tensor, torch.Tensor]:
        """The patterns of both arguments, int64 (N,)."""
        return self.numbers // PATTERNS, self.numbers % PATTERNS

    @cached_property
    def errors(self) -> Errors:
        """The errors, by the reference of the passes."""
        return measure(self.actual, self.reference.exact(*self.patterns), self.reference.fmt)

    def elements(self) -> Elements:
        """Return them as the judge takes them."""
        ref = self.reference
        inputs = tuple(tensors.from_bits(part, ref.fmt) for part in self.patterns)
        return Elements(ref.operator, ref.formula, ref.fmt, inputs, self.actual, self.errors)

    def batch(self) -> Batch:
        """Return them as a summary takes them."""
        codes, _ = self.reference.places(*self.patterns)
        got = tensors.to_bits(self.actual, self.reference.fmt)
        return Batch(self.patterns, got, codes, self.errors)


@dataclass(frozen=True)
class _Rows:
    """Results of rows of pairs, as samples or as pairs of some of them."""

    reference: PairReference
    first: int
    actual: torch.Tensor

    def pairs(self, indices: torch.Tensor) -> _Pairs:
        """Return some of the pairs, by their indices in these rows, int64 (N,)."""
        numbers = indices + self.first * PATTERNS
        return _Pairs(self.reference, numbers, self.actual.view(-1)[indices])

    def sample_above(self, known: Sample | None, index: int, size: float) -> Sample | None:
        """Return an element unless its error is below that of one already known."""
        if known is not None and size < abs(known.error_ulp):
            return None
        return self.sample(index, size)

    def sample_before(self, known: Sample | None, index: int) -> Sample | None:
        """Return an element unless one before these rows is already known."""
        if known is not None and known.inputs[0] < self.first:
            return None
        return self.sample(index)

    def sample(self, index: int, size: float | None = None) -> Sample:
        """Return one element; ``size`` is what the engine measured as its ``|error|``."""
        number = torch.tensor([index + self.first * PATTERNS])
        actual = self.actual.view(-1)[index : index + 1].cpu()
        # On a GPU a hundred launches for one element would take longer than the pass itself.
        sample = _Pairs(self.reference.on_cpu(), number, actual).batch().sample(0)
        if size is None:
            return sample
        return Sample(sample.inputs, sample.actual, float(np.copysign(size, sample.error_ulp)))
