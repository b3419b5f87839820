"""The measuring pass with an engine: what its rows and its selected elements say, as a census.

An engine does what is the same for every element; here is what happens to the few elements that
have to be judged by themselves. Anything unforeseen in a flat span, and infinite inputs, go through
the general :class:`~gelu_verify.exhaustive.measuring.Pass`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
import torch

from gelu_verify.allowances import permitted
from gelu_verify.elements import Elements
from gelu_verify.exhaustive import scattered, settled
from gelu_verify.exhaustive.block import Results
from gelu_verify.exhaustive.figures import Figures
from gelu_verify.exhaustive.inputs import consecutive_bits
from gelu_verify.exhaustive.limits import back_from
from gelu_verify.exhaustive.measuring import Pass
from gelu_verify.exhaustive.scattered import Scattered
from gelu_verify.exhaustive.spans import turning_pattern

_UNSIGNED = 0xFFFF_FFFF
#: Elements collected before they are judged: judging a few costs as much as judging thousands.
_COLLECTED = {"cpu": 1 << 15, "cuda": 1 << 22}
#: Fewer elements than this are measured faster on the CPU than on a GPU.
_FEW = 1 << 14


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
        """Add results (N,), of which the first ``lead`` (0 or 1) only come before.

        What is left over is to be read before the next call: a kernel may use its memory again.
        """

    def take(self) -> Figures:
        """Return the rows and begin anew."""


def runs(starts: np.ndarray, stops: np.ndarray) -> list[tuple[int, int]]:
    """Return ascending ranges with those that touch joined."""
    breaks = np.flatnonzero(starts[1:] != stops[:-1]) + 1
    edges = zip(np.split(starts, breaks), np.split(stops, breaks), strict=True)
    return [(int(first[0]), int(last[-1])) for first, last in edges if len(first)]


@dataclass(frozen=True)
class EnginePass:
    """A pass whose figures come from an engine; ``general`` holds function, contract and census.

    What calls leave is judged together at the end: to judge a few costs as much as thousands.
    """

    general: Pass
    engine: Engine
    collected: list[Scattered] = field(default_factory=list)
    ranges: list[tuple[int, Results]] = field(default_factory=list)

    def add(self, first: int, actual: torch.Tensor, lead: int) -> None:
        """Add results (N,), the first ``lead`` (0 or 1) of which only precede the patterns.

        first: the first pattern to be added.
        """
        actual = actual.contiguous()
        left = self.engine.measure(first, actual, lead)
        low = first - lead
        self.ranges.extend(
            (start, _results(low, actual, start, stop)) for start, stop in left.ranges
        )
        if sum(len(part.bits) for _, part in self.ranges) >= _FEW:
            self._measure_ranges()  # which hold on to the results of this call
        for part in left.selected:
            self.collected.append(part)
            if sum(map(len, self.collected)) >= _COLLECTED[actual.device.type]:
                self._judge_collected()

    def finish(self) -> None:
        """Add all that the engine holds to the census: to be called after the last results."""
        self._measure_ranges()
        self._judge_collected()
        settled.add(self.general, self.engine.take())

    def _measure_ranges(self) -> None:
        for start, results in self.ranges:
            self.general.add(start, results)
        self.ranges.clear()

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
        self.general.census.summary.add_classes(batch)
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
        limit = back_from(self.general.contract) * elements.errors.ulp_size
        is_open = is_back & (back > limit)
        if bool(is_open.any()):
            slack = 2 * permitted(self.general.contract, elements.select(is_open))
            self.general.census.reversals_broken += int((back[is_open] > slack).sum())


def _results(low: int, actual: torch.Tensor, start: int, stop: int) -> Results:
    """Return the results for patterns [start, stop) of results that begin at pattern ``low``."""
    ordered = start > low and start % (1 << 31)
    before = float(actual[start - low - 1]) if ordered else None
    part = actual[start - low : stop - low]
    if stop - start < _FEW:  # which wait, while a kernel may use its memory again
        part = part.to("cpu", copy=True)
    return Results(consecutive_bits(start, stop - start, part.device), part, before)
