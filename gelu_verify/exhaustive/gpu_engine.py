"""The engine on a GPU: launches the Triton kernels, whose rows stay on the device between calls.

What the rows rest on: the float64 formulas of ``reference.tails`` evaluated by Triton, whose
rounding errors are those of the analysis there (no contraction, exp within 1 ULP). The certificate
is of torch's evaluation on the CPU, by which all samples are measured.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import cache
from typing import Any

import numpy as np
import torch

from gelu_verify.exhaustive import gpu_kernels
from gelu_verify.exhaustive.exact import series
from gelu_verify.exhaustive.figures import (
    COLUMNS,
    SAMPLES,
    SETS,
    SIZES,
    Column,
    Figures,
    Size,
)
from gelu_verify.exhaustive.limits import Limits
from gelu_verify.exhaustive.pieces import (
    FLAT_PART,
    FLAT_PIECE,
    PART,
    PIECE,
    Stretches,
    WorkList,
    work_list,
)
from gelu_verify.exhaustive.scattered import Scattered, neighbours
from gelu_verify.exhaustive.settling import Leftovers, runs
from gelu_verify.measure import histogram
from gelu_verify.reference import coefficients

_BINS_POWER = 256
_ROUND = (1.5 * 2.0 ** (52 - 16), 1.5 * 2.0 ** (52 - 23))
#: √(2/π), the factor of x³, the factor of the sigmoid, φ(0): see ``Operator.cancellation``.
_SLACK = (math.sqrt(2 / math.pi), 0.044715, 1.702, 1 / math.sqrt(2 * math.pi))
#: Elements handed over at once: their tensors take a few hundred bytes each.
_SELECTED = 1 << 25
_REDUCED = 1024
#: Registers a thread of the measuring kernel: five programs of four warps on one multiprocessor.
_REGISTERS = 96
_IDENTITY, _HALF = 0x3F80_0000, 0x3F00_0000


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


class _Launch:
    """The pieces of one kind of work of a call, and what the kernels leave of each."""

    def __init__(self, stretches: Stretches, is_series: bool, device: torch.device) -> None:
        self.pieces = stretches.pieces
        self.is_series = is_series
        self.rows = len(stretches)
        self.table = torch.from_numpy(stretches.table).to(device, non_blocking=True)
        self.sizes = torch.empty((4, self.pieces), dtype=torch.float64, device=device)
        shape = (gpu_kernels.PIECE_COLUMNS, self.pieces)
        self.integers = torch.empty(shape, dtype=torch.int64, device=device)
        self.counts = torch.empty((2, self.pieces), dtype=torch.int32, device=device)

    @property
    def selected(self) -> torch.Tensor:
        """How many elements of each piece are selected."""
        return self.counts[0]

    @property
    def far(self) -> torch.Tensor:
        """How many elements of each piece are beyond 4 ULP, and not selected."""
        return self.counts[1]


class GpuEngine:
    """Measures calls of one function on one GPU. See ``settling.Engine``."""

    name = "triton"

    def __init__(self, formula: str, derivative: int, limits: Limits, device: torch.device) -> None:
        self.formula, self.derivative, self.device = formula, derivative, device
        self._coefficients, self._terms = reference_table(formula, derivative, device)
        self._tanh, _ = reference_table("tanh", derivative, device)
        numbers = [*series(formula), *limits.numbers(formula), *_SLACK, 2.0**-148, 2.0**126]
        self._constants = torch.tensor(numbers, dtype=torch.float64, device=device)
        self._reset()

    def _reset(self) -> None:
        empty = Figures.of(self.formula, self.derivative)
        self._inputs = empty.integers[:, Column.INPUTS].copy()
        self._sizes, self._integers, self._results = (
            torch.from_numpy(part).to(self.device)
            for part in (empty.sizes, empty.integers, empty.results)
        )
        shape = (len(empty.counts), _BINS_POWER)
        self._counts = torch.zeros(shape, dtype=torch.int32, device=self.device)

    def measure(self, first: int, actual: torch.Tensor, lead: int) -> Leftovers:
        """Add results (N,), of which the first ``lead`` (0 or 1) only come before."""
        low, stop = first - lead, first + actual.numel() - lead
        work = work_list(self.formula, self.derivative, first, stop)
        other = self._flat(work.flat, low, actual)
        launches = [
            self._launch(stretches, is_series, low, actual)
            for stretches, is_series in ((work.series, True), (work.full, False))
            if len(stretches)
        ]
        # One copy tells whether anything is left over.
        sums = [launch.counts.sum(1, dtype=torch.int64) for launch in launches]
        totals = torch.cat([other.sum().reshape(1), *sums])
        return self._rest(first, stop, low, actual, work, other, launches, totals.tolist())

    def _rest(
        self, first: int, stop: int, low: int, actual: torch.Tensor, work: WorkList,
        other: torch.Tensor, launches: list[_Launch], totals: list[int],
    ) -> Leftovers:  # fmt: skip
        """Finish a call, whose totals are known: wrong flat pieces; selected and far elements of
        every launch.
        """
        has_far = [total > 0 for total in totals[2::2]]
        for launch, far in zip(launches, has_far, strict=True):
            if far:
                self._sets(launch, low, actual)
            self._reduce(launch)
        self._samples(low, first, stop, actual)
        for stretches in (work.flat, work.series, work.full):
            lengths = stretches.table[:, 1] - stretches.table[:, 0]
            self._inputs[stretches.table[:, 4]] += lengths
        ranges = list(work.infinite)
        if totals[0]:
            ranges += self._other(work.flat, other.cpu().numpy() != 0)
        left = list(zip(launches, has_far, totals[1::2], strict=True))
        return Leftovers(ranges, self._selected(left, low, actual))

    def take(self) -> Figures:
        """Return the rows and begin anew."""
        integers = self._integers.cpu().numpy()
        integers[:, Column.INPUTS] = self._inputs
        counts = self._counts.cpu().numpy()[:, : histogram.BIN_COUNT].astype(np.int64)
        figures = Figures(self._sizes.cpu().numpy(), integers, self._results.cpu().numpy(), counts)
        self._reset()
        return figures

    def _flat(self, stretches: Stretches, low: int, actual: torch.Tensor) -> torch.Tensor:
        """Return, for every flat piece, 1 where it holds what has to be measured otherwise."""
        other = torch.zeros(stretches.pieces, dtype=torch.int32, device=self.device)
        if len(stretches):
            table = torch.from_numpy(stretches.table).to(self.device, non_blocking=True)
            gpu_kernels.flat_kernel[(stretches.pieces,)](
                actual.view(torch.int32), table, len(stretches), low, self._integers, other,
                IDENTITY=_IDENTITY if self.derivative else 0,
                HALF=_HALF if self.derivative else 0,
                PIECE=FLAT_PIECE, BLOCK=FLAT_PART,
                COLUMNS=COLUMNS, ZERO_FIRST=int(Column.ZERO_FIRST),
                NAN_FIRST=int(Column.NAN_FIRST), ZERO=int(Column.ZERO), NAN=int(Column.NAN),
                REACH=int(Column.REACH), num_warps=8,
            )  # fmt: skip
        return other

    def _other(self, stretches: Stretches, wrong: np.ndarray) -> list[tuple[int, int]]:
        """Return the ranges of the flat pieces that hold anything else, and uncount them."""
        pieces = np.flatnonzero(wrong)
        table = stretches.table
        stretch = np.searchsorted(table[:, 2], pieces, side="right") - 1
        starts = table[stretch, 0] + (pieces - table[stretch, 2]) * FLAT_PIECE
        stops = np.minimum(starts + FLAT_PIECE, table[stretch, 1])
        np.subtract.at(self._inputs, table[stretch, 4], stops - starts)
        return runs(starts, stops)

    def _launch(
        self, stretches: Stretches, is_series: bool, low: int, actual: torch.Tensor
    ) -> _Launch:
        launch = _Launch(stretches, is_series, self.device)
        gpu_kernels.measure_kernel[(launch.pieces,)](
            *self._arguments(launch, low, actual),
            launch.sizes, launch.integers, launch.selected, launch.far, self._counts, launch.pieces,
            **self._constexprs(launch),
            LOWEST_BIN=histogram.OFFSET, BINS=histogram.BIN_COUNT, BINS_POWER=_BINS_POWER,
            maxnreg=_REGISTERS,
        )  # fmt: skip
        return launch

    def _sets(self, launch: _Launch, low: int, actual: torch.Tensor) -> None:
        """Settle what is beyond 4 ULP in sets."""
        members = launch.far.nonzero().flatten()
        programs = len(members) * (PIECE // PART)
        sizes = torch.empty((SETS, programs), dtype=torch.float64, device=self.device)
        integers = torch.empty((3 * SETS, programs), dtype=torch.int64, device=self.device)
        gpu_kernels.set_kernel[(programs,)](
            *self._arguments(launch, low, actual), self._tanh,
            members, launch.integers, launch.selected, launch.pieces, sizes, integers, programs,
            SETS=SETS, **self._constexprs(launch),
        )  # fmt: skip
        edges = torch.cat([launch.table[:, 2], launch.table.new_tensor([launch.pieces])])
        bounds = torch.searchsorted(members, edges) * (PIECE // PART)
        gpu_kernels.reduce_sets_kernel[(launch.rows,)](
            launch.table, bounds, programs, sizes, integers,
            self._sizes, self._integers,
            COLUMNS=COLUMNS, SIZES=SIZES, SETS=SETS, SET=int(Size.SET),
            SET_FIRST=int(Column.SET_FIRST), SET_WORST_AT=int(Column.SET_WORST_AT),
            SET_COUNT=int(Column.SET_COUNT), BLOCK=_REDUCED,
        )  # fmt: skip

    def _reduce(self, launch: _Launch) -> None:
        """Add the pieces to the rows of their spans."""
        gpu_kernels.reduce_kernel[(launch.rows,)](
            launch.table, launch.rows, launch.pieces, launch.sizes, launch.integers,
            self._sizes, self._integers,
            COLUMNS=COLUMNS, SIZES=SIZES, WORST_AT=int(Column.WORST_AT),
            HALF_FIRST=int(Column.HALF_FIRST), ONE_FIRST=int(Column.ONE_FIRST),
            BACK_AT=int(Column.BACK_AT), HALF=int(Column.HALF), REACH=int(Column.REACH),
            CLIPPED=int(Column.CLIPPED), SIGNED_LOW=int(Column.SIGNED_LOW),
            LOWEST=int(Size.LOWEST), BLOCK=_REDUCED,
        )  # fmt: skip

    def _arguments(self, launch: _Launch, low: int, actual: torch.Tensor) -> tuple[Any, ...]:
        table, constants = self._coefficients, self._constants
        return actual, launch.table, launch.rows, low, table, constants

    def _constexprs(self, launch: _Launch) -> dict[str, Any]:
        return {
            "FORMULA": self.formula,
            "DERIVATIVE": self.derivative,
            "SERIES": launch.is_series,
            "TERMS": self._terms,
            "PIECE": PIECE,
            "BLOCK": PART,
            "num_warps": 4,
            "enable_fp_fusion": False,
        }

    def _samples(self, low: int, first: int, stop: int, actual: torch.Tensor) -> None:
        """Keep the results of the samples that lie in this call."""
        cells = self._results.numel()
        gpu_kernels.sample_kernel[(-(-cells // 256),)](
            actual.view(torch.int32), low, first, stop, self._integers, self._results, cells,
            COLUMNS=COLUMNS, SAMPLES=SAMPLES, BLOCK=256,
        )  # fmt: skip

    def _selected(
        self, launches: list[tuple[_Launch, bool, int]], low: int, actual: torch.Tensor
    ) -> Iterator[Scattered]:
        """Yield the selected elements, at most ``_SELECTED`` and the rest of a piece at a time."""
        for launch, has_far, known in launches:
            # What no set took was selected after the totals were known.
            total = int(launch.selected.sum()) if has_far else known
            if total == 0:
                continue
            pieces = launch.selected.nonzero().flatten()
            counts = launch.selected[pieces].long()
            places = counts.cumsum(0) - counts
            if total <= _SELECTED:
                yield self._written(launch, has_far, pieces, places, total, low, actual)
                continue
            batch = torch.div(places, _SELECTED, rounding_mode="floor")
            for size in torch.unique_consecutive(batch, return_counts=True)[1].tolist():
                members, pieces = pieces[:size], pieces[size:]
                part, counts = counts[:size], counts[size:]
                places, total = part.cumsum(0) - part, int(part.sum())
                yield self._written(launch, has_far, members, places, total, low, actual)

    def _written(
        self, launch: _Launch, has_far: bool, members: torch.Tensor, places: torch.Tensor,
        total: int, low: int, actual: torch.Tensor,
    ) -> Scattered:  # fmt: skip
        bits = torch.empty(total, dtype=torch.int32, device=self.device)
        gpu_kernels.select_kernel[(len(members),)](
            *self._arguments(launch, low, actual), members, places, bits, self._tanh,
            SETS=has_far, **self._constexprs(launch),
        )  # fmt: skip
        return neighbours(self.formula, bits, low, actual)
