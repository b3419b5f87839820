"""The measuring pass on a GPU: launches the Triton kernels and turns their figures into a census.

What the kernels flag (elements with a class, verdicts that are open or need an allowance, errors
beyond 2^8 ULP) is measured again by :class:`~gelu_verify.exhaustive.measuring.Pass`, in torch on
the same device.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from itertools import pairwise

import numpy as np
import torch

from gelu_verify.exhaustive import gpu_kernels
from gelu_verify.exhaustive.block import Block, Results, consecutive_bits
from gelu_verify.exhaustive.exact import series
from gelu_verify.exhaustive.measuring import GPU_BLOCK, OPEN, Pass
from gelu_verify.exhaustive.pieces import FLAT_PIECE, PIECE, Pieces, WorkList, work_list
from gelu_verify.exhaustive.spans import EPSILON, Span, Zone, spans
from gelu_verify.judge import Tally
from gelu_verify.measure import histogram
from gelu_verify.measure.summary import worse
from gelu_verify.reference import coefficients

_BINS_POWER = 256
_ROUND = (1.5 * 2.0 ** (52 - 16), 1.5 * 2.0 ** (52 - 23))


@cache
def reference_table(
    formula: str, derivative: int, device: torch.device
) -> tuple[torch.Tensor, int]:
    """Return the coefficients that ``gpu_reference`` reads, and the number of polynomial terms."""
    if formula == "erf":
        erf = coefficients.erf_coefficients()
        terms = erf.slope if derivative else erf.tail
        values = [*terms, erf.zero_hi, erf.zero_lo]
        return torch.tensor(values, dtype=torch.float64, device=device), len(terms)
    c = coefficients.logistic_constants(formula)
    values = [c.linear_hi, c.linear_lo, c.cubic_hi, c.cubic_lo, c.zero_hi, c.zero_lo]
    values += [c.argument_hi, c.argument_lo, c.decay, *_ROUND]
    return torch.tensor(values, dtype=torch.float64, device=device), 2


@dataclass(frozen=True)
class _Figures:
    """What one launch of ``measure_kernel`` left, as arrays: see the kernel's docstring."""

    pieces: Pieces
    spans: np.ndarray
    largest: np.ndarray
    integers: np.ndarray
    histogram: np.ndarray
    sums: np.ndarray


@dataclass(frozen=True)
class GpuPass(Pass):
    """A pass whose figures come from Triton; ``lead`` of the results is the element before."""

    def add_leading(self, first: int, actual: torch.Tensor, lead: int) -> None:
        """Add results (N,), the first ``lead`` (0 or 1) of which only precede the patterns.

        first: the first pattern to be added, a multiple of the largest piece.
        """
        count = actual.numel() - lead
        work = work_list(self.formula, self.operator.derivative, actual.device)
        low = first - lead
        self._flat(work.flat.within(first, first + count), low, actual)
        for pieces, is_series in ((work.series, True), (work.full, False)):
            part = pieces.within(first, first + count)
            if len(part):
                self._measured(self._launch(part, low, actual, is_series), low, actual)
        for span in self._others(work, first, first + count):
            self.add(span.start, _slice(low, actual, span.start, span.stop))

    def _others(self, work: WorkList, start: int, stop: int) -> Iterator[Span]:
        for span in work.other:
            part = span.clipped(start, stop)
            if part is not None:
                yield part

    def _flat(self, pieces: Pieces, low: int, actual: torch.Tensor) -> None:
        if len(pieces) == 0:
            return
        wrong = torch.empty((len(pieces), 2), dtype=torch.int32, device=actual.device)
        derivative = self.operator.derivative
        gpu_kernels.flat_kernel[(len(pieces),)](
            actual.view(torch.int32), pieces.starts, pieces.counts, pieces.kinds, wrong, low,
            IDENTITY=0x3F80_0000 if derivative else 0, HALF=0x3F00_0000 if derivative else 0,
            BLOCK=PIECE, CHUNKS=FLAT_PIECE // PIECE, num_warps=8,
        )  # fmt: skip
        unexpected, nonzero = wrong.cpu().numpy().T
        counts = pieces.counts.cpu().numpy()
        table = spans(self.formula, derivative)
        index = pieces.spans.cpu().numpy()
        for span_index in np.unique(index):
            members = index == span_index
            self._flat_span(
                table[span_index], pieces.edges[members], counts[members], unexpected[members],
                nonzero[members], low, actual,
            )  # fmt: skip

    def _flat_span(
        self,
        span: Span,
        starts: np.ndarray,
        counts: np.ndarray,
        unexpected: np.ndarray,
        nonzero: np.ndarray,
        low: int,
        actual: torch.Tensor,
    ) -> None:
        whole = Span(int(starts[0]), int(starts[-1] + counts[-1]), span.zone, span.region)
        if not unexpected.any():
            self._count_flat(whole)
            return
        if span.zone is Zone.FLAT_ZERO and not nonzero.any():
            self._count_flat(whole)
            part = _slice(low, actual, whole.start, whole.start + 1)
            self._count_positive_zeros(whole, part)
            return
        self.add(whole.start, _slice(low, actual, whole.start, whole.stop))

    def _launch(self, pieces: Pieces, low: int, actual: torch.Tensor, is_series: bool) -> _Figures:
        device, n = actual.device, len(pieces)
        derivative = self.operator.derivative
        table, terms = reference_table(self.formula, derivative, device)
        numbers = [*series(self.formula), self._flag_from(), OPEN]
        constants = torch.tensor(numbers, dtype=torch.float64, device=device)
        index = pieces.spans
        base = int(index[0])
        span_count = int(index[-1]) - base + 1
        largest = torch.empty((n, 2), dtype=torch.float64, device=device)
        integers = torch.empty((n, 10), dtype=torch.int64, device=device)
        bins = torch.zeros((span_count, _BINS_POWER), dtype=torch.int32, device=device)
        sums = torch.zeros((span_count, 2), dtype=torch.int64, device=device)
        gpu_kernels.measure_kernel[(n,)](
            actual, pieces.starts, pieces.counts, index - base, pieces.kinds, table, low,
            largest, integers, bins, sums, constants,
            FORMULA=self.formula, DERIVATIVE=derivative, SERIES=is_series, TERMS=terms,
            LOWEST_BIN=histogram.OFFSET, BINS=histogram.BIN_COUNT, BINS_POWER=_BINS_POWER,
            BLOCK=PIECE, num_warps=8, enable_fp_fusion=False,
        )  # fmt: skip
        arrays = [t.cpu().numpy() for t in (index, largest, integers, bins, sums)]
        return _Figures(pieces, *arrays)

    def _flag_from(self) -> float:
        """Return the error from which an element is judged by the host."""
        judged = (c for c in self._contracts() if not self._is_plain(c) or c.max_error_ulp > 1.0)
        return min(contract.max_error_ulp for contract in judged) - OPEN

    def _measured(self, figures: _Figures, low: int, actual: torch.Tensor) -> None:
        table = spans(self.formula, self.operator.derivative)
        base = int(figures.spans[0])
        edges = np.flatnonzero(np.diff(figures.spans, prepend=-1, append=-1))
        for begin, end in pairwise(edges):
            index = int(figures.spans[begin])
            part = _Figures(
                figures.pieces, figures.spans[begin:end], figures.largest[begin:end],
                figures.integers[begin:end], figures.histogram[index - base],
                figures.sums[index - base],
            )  # fmt: skip
            starts = figures.pieces.edges[begin:end]
            counts = figures.pieces.counts[begin:end].cpu().numpy()
            self._span_figures(table[index], part, int(counts.sum()), low, actual)
            self._span_counts(table[index], part, low, actual)
            self._flagged(table[index], part, starts, counts, low, actual)

    def _span_figures(
        self, span: Span, part: _Figures, count: int, low: int, actual: torch.Tensor
    ) -> None:
        census = self.census
        census.summary.inputs += count
        census.summary.finite_inputs += count
        assert span.region is not None
        region = census.summary.regions[span.region]
        region.histogram += part.histogram[: histogram.BIN_COUNT]
        region.count += int(part.histogram.sum())
        region.signed_sum += int(part.sums[0])
        region.small_square_sum += int(part.sums[1])
        reach = int(part.integers[:, 8].max())
        if span.negative and reach >= 0:
            census.zero_reach = max(census.zero_reach, reach & 0x7FFF_FFFF)
        elif reach >= 0:
            census.identity_reach = max(census.identity_reach, reach)
        usable = (part.integers[:, 0] & gpu_kernels.LARGE) == 0
        if not usable.any():
            return
        sizes = np.where(usable, part.largest[:, 0], -1.0)
        if sizes.max() < EPSILON:
            return
        pattern = int(part.integers[sizes == sizes.max(), 1].min())
        sample = self._block_at(span, pattern, low, actual).worst()
        region.worst = worse(region.worst, sample)
        found = worse(census.binades.get(span.binade), sample)
        assert found is not None
        census.binades[span.binade] = found

    def _block_at(self, span: Span, pattern: int, low: int, actual: torch.Tensor) -> Block:
        one = Span(pattern, pattern + 1, span.zone, span.region)
        results = _slice(low, actual, pattern, pattern + 1).on_cpu()
        return Block.of(self.operator, self.formula, one, results)

    def _span_counts(self, span: Span, part: _Figures, low: int, actual: torch.Tensor) -> None:
        """Add the counts beyond 1/2 and 1 ULP to the contracts that need no more, and reversals."""
        worst_at = int(part.integers[part.largest[:, 0] == part.largest[:, 0].max(), 1].min())
        for contract in self._contracts():
            self._tally(contract)
            if not self._is_plain(contract) or contract.max_error_ulp > 1.0:
                continue
            column = 2 if contract.max_error_ulp <= 0.5 else 4
            count = int(part.integers[:, column].sum())
            if count == 0:
                continue
            first = self._block_at(span, int(part.integers[:, column + 1].min()), low, actual)
            worst = self._block_at(span, worst_at, low, actual)
            self._tally(contract).merge(Tally(contract, count, first.sample(0), worst.sample(0)))
        reversals = int(part.integers[:, 6].sum())
        if reversals:
            size = part.largest[:, 1].max()
            at = int(part.integers[part.largest[:, 1] == size, 7].min())
            sample = self._block_at(span, at, low, actual).sample(0, float(size))
            self.census.reversals += reversals
            self.census.worst_reversal = worse(self.census.worst_reversal, sample)

    def _flagged(
        self,
        span: Span,
        part: _Figures,
        starts: np.ndarray,
        counts: np.ndarray,
        low: int,
        actual: torch.Tensor,
    ) -> None:
        flags = part.integers[:, 0]
        # A step back within twice the limit is within the contract of both neighbours.
        back = part.largest[:, 1] > 2.0 * min(4.0, self.contract.max_error_ulp)
        for start, stop, large in _runs(starts, counts, flags, back):
            block_span = Span(start, stop, span.zone, span.region)
            results = _slice(low, actual, start, stop)
            block = Block.of(self.operator, self.formula, block_span, results)
            if large:
                self._figures(block)
            self._classes(block)
            self._verdicts(block, counted=True)
            if self.operator.derivative == 0:
                self._judge_reversals(block, self._out_of_order(block))


def _slice(low: int, actual: torch.Tensor, start: int, stop: int) -> Results:
    """Return the results for patterns [start, stop) of results that begin at pattern ``low``."""
    bits = consecutive_bits(start, stop - start, actual.device)
    before = float(actual[start - low - 1]) if start > low and start % (1 << 31) else None
    return Results(bits, actual[start - low : stop - low], before)


def _runs(
    starts: np.ndarray, counts: np.ndarray, flags: np.ndarray, back: np.ndarray
) -> Iterator[tuple[int, int, bool]]:
    """Yield ``(start, stop, large)`` of flagged pieces, neighbours joined while they are alike."""
    begin = stop = -1
    large = False
    for index in np.flatnonzero((flags != 0) | back):
        start, count = int(starts[index]), int(counts[index])
        alike = bool(flags[index] & gpu_kernels.LARGE) == large
        if start != stop or not alike or start + count - begin > GPU_BLOCK:
            if begin >= 0:
                yield begin, stop, large
            begin, large = start, bool(flags[index] & gpu_kernels.LARGE)
        stop = start + count
    if begin >= 0:
        yield begin, stop, large
