"""The engine on a CPU: compiled loops over the results of each call, rows kept between calls.

What the rows rest on: the float64 formulas of ``reference.tails`` in compiled code, whose rounding
errors are those of the analysis there (no contraction, the C library's exp and expm1 within 1 ULP).
The certificate is of torch's evaluation, by which all samples and selected elements are measured.
"""

from __future__ import annotations

import numpy as np
import torch

from gelu_verify.exhaustive import cpu_kernels, cpu_reference
from gelu_verify.exhaustive.exact import series
from gelu_verify.exhaustive.figures import Column, Figures
from gelu_verify.exhaustive.limits import Limits
from gelu_verify.exhaustive.pieces import FLAT_KINDS, stretches
from gelu_verify.exhaustive.scattered import neighbours
from gelu_verify.exhaustive.settling import Leftovers
from gelu_verify.exhaustive.spans import Zone


class CpuEngine:
    """Measures calls of one function on the CPU. See ``settling.Engine``."""

    name = "numba"

    def __init__(self, formula: str, derivative: int, limits: Limits) -> None:
        self.formula, self.derivative = formula, derivative
        self._code = cpu_reference.FORMULAS[formula]
        self._coefficients = cpu_reference.table(formula, derivative)
        self._tanh = cpu_reference.table("tanh", derivative)
        self._constants = np.array([*series(formula), *limits.numbers(formula)])
        self._rooms = np.empty((6, cpu_kernels.CHUNK))
        self._selected = np.empty(0, dtype=np.int64)
        self._rows = Figures.of(formula, derivative)

    def measure(self, first: int, actual: torch.Tensor, lead: int) -> Leftovers:
        """Add results (N,), the first ``lead`` (0 or 1) of which only precede the patterns."""
        low, stop = first - lead, first + actual.numel() - lead
        got = actual.numpy()
        bits = got.view(np.int32)
        if len(self._selected) < len(got):
            self._selected = np.empty(len(got), dtype=np.int64)
        ranges, chosen = [], 0
        for part in stretches(self.formula, self.derivative, first, stop):
            if part.span.zone is Zone.INFINITE:
                ranges.append((part.start, part.stop))
                continue
            rows = self._rows
            integers, results = rows.integers[part.row], rows.results[part.row]
            if part.span.zone in FLAT_KINDS:
                here = slice(part.start - low, part.stop - low)
                if not self._in_order(part.start, part.span.zone, low, got) or not cpu_kernels.flat(
                    bits[here], part.start, part.kind, self.derivative, integers, results
                ):
                    ranges.append((part.start, part.stop))
                    continue
            else:
                chosen = cpu_kernels.measure(
                    got, bits, low, part.start, part.stop, part.kind, self._code, self.derivative,
                    part.span.zone is Zone.SERIES, self._coefficients, self._tanh, self._constants,
                    self._rooms, self._rooms.view(np.int64), rows.sizes[part.row], integers,
                    results, rows.counts[part.row], self._selected, chosen,
                )  # fmt: skip
            integers[Column.INPUTS] += part.stop - part.start
        if not chosen:
            return Leftovers(ranges, ())
        patterns = self._selected[:chosen].astype(np.uint32).view(np.int32)
        selected = neighbours(self.formula, torch.from_numpy(patterns), low, actual)
        return Leftovers(ranges, (selected,))

    def _in_order(self, start: int, zone: Zone, low: int, got: np.ndarray) -> bool:
        """Tell whether the first of a flat stretch is in order with the one before it."""
        if self.derivative or zone is Zone.NAN or start in (low, 1 << 31):
            return True
        step = float(got[start - low]) - float(got[start - low - 1])
        if zone is Zone.FLAT_HALF and start >= 1 << 31:
            step = -step
        return not -np.inf < step < 0.0

    def take(self) -> Figures:
        """Return the rows and begin anew."""
        figures, self._rows = self._rows, Figures.of(self.formula, self.derivative)
        return figures
