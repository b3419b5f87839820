"""The search: a start over the whole line, local descents around the worst, then Hypothesis.

Each stage looks in strata, ranges of x that together are the whole line, so that the tail in which
a kernel loses everything does not keep the search from the rest. The seed fixes every random
choice; how many of them are made is a matter of time.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import count, pairwise

import torch

from gelu_verify.formats import Format, tensors
from gelu_verify.hunt.climbing import UNSCORED, climb
from gelu_verify.hunt.evaluation import LANES, Evaluator
from gelu_verify.inputs import sweep
from gelu_verify.measure.regions import TINY_BELOW, Regions
from gelu_verify.operators import place

#: Called after every batch: a moment to tell how far the search is.
OnBatch = Callable[[], None]

#: Points of a stratum the start tries at random, half evenly in ordinals, half evenly in x.
_START_POINTS = 1 << 14
#: Points of a stratum measured in mpmath at the start, and of one neighbourhood.
_START_LIMIT = 160
_STEP_LIMIT = 32
_STEP_POINTS = 1024
#: Radii of a descent, in ordinals: from eight binades around a random point, from 1/16 of a binade
#: around a known bad one, down to the next neighbours; each is 1/16 of the one before.
_SHRINK_BITS = 4
_WIDE, _NARROW = 3, -4
_POOL = 16
#: Share of descents that start at a random point instead of a known bad one.
_FRESH = 0.25
_EXAMPLES = 120
_EXAMPLE_LIMIT = 4
#: Shares of the time after which the start and the descents end.
_START_UNTIL, _DESCENTS_UNTIL = 0.35, 0.75


@dataclass
class Stratum:
    """A range of ordinals of x, both ends included, and the worst points known in it."""

    low: int
    high: int
    pool: list[tuple[float, tuple[int, ...]]] = field(default_factory=list)

    def add(self, points: torch.Tensor, scores: torch.Tensor) -> None:
        """Keep the worst points, the worst first."""
        for index in torch.topk(scores, min(_POOL, len(scores))).indices.tolist():
            if scores[index] > UNSCORED:
                row = tuple(int(part) for part in points[index])
                self.pool.append((float(scores[index]), row))
        self.pool = sorted(set(self.pool), reverse=True)[:_POOL]


def strata(regions: Regions, fmt: Format) -> list[Stratum]:
    """Return the regions as ranges of ordinals; ``centre`` is in two parts, around ``tiny``."""
    largest = fmt.largest_bits
    borders = [*regions.borders(), TINY_BELOW, -TINY_BELOW]
    values = torch.tensor(borders, dtype=torch.float64).to(tensors.dtype(fmt))
    inner = tensors.ordinals(values, fmt).clamp(-largest, largest).tolist()
    ends = sorted({-largest, *inner, largest})
    return [Stratum(low, high) for low, high in pairwise(ends)]


class Search:
    """One hunt. ``run`` does it; what was found is in the evaluator."""

    def __init__(
        self, evaluator: Evaluator, seed: int, seconds: float, on_batch: OnBatch = lambda: None
    ) -> None:
        self.evaluator = evaluator
        self.fmt = evaluator.subject.fmt
        self.arguments = evaluator.subject.operator.arguments
        self.swept = place(self.arguments)
        self.seed = seed
        self.stages: dict[str, int] = {}
        self.strata = strata(evaluator.regions, self.fmt)
        self._on_batch = on_batch
        self._generator = torch.Generator().manual_seed(seed)
        self._started, self._seconds = time.monotonic(), seconds

    def run(self) -> None:
        """Go through the stages until the time is over."""
        for name, stage in (
            ("start", self._start),
            ("descents", self._descents),
            ("targeted", self._targeted),
        ):
            before = self.evaluator.measured
            try:
                stage()
            finally:
                self.stages[name] = self.evaluator.measured - before

    def _over(self, share: float) -> bool:
        return time.monotonic() - self._started > share * self._seconds

    def _try(self, stratum: Stratum, points: torch.Tensor, limit: int) -> torch.Tensor:
        scores = self.evaluator.scores(points, limit)
        stratum.add(points, scores)
        self._on_batch()
        return scores

    # The start: random points of every stratum, then the points of a sweep.

    def _start(self) -> None:
        for stratum in self.strata:
            self._try(stratum, self._random(stratum, _START_POINTS), _START_LIMIT)
        swept = self._swept()
        for stratum in self.strata:
            x = swept[:, self.swept]
            mine = swept[(x >= stratum.low) & (x <= stratum.high)]
            for part in mine.split(1 << 18):
                if self._over(_START_UNTIL):
                    return
                self._try(stratum, part, _START_LIMIT)

    def _swept(self) -> torch.Tensor:
        inputs = sweep.build(self.fmt, self.arguments, sweep.Depth.QUICK, self.seed).inputs
        finite = torch.stack([torch.isfinite(part.double()) for part in inputs]).all(0)
        return torch.stack([tensors.ordinals(part[finite], self.fmt) for part in inputs], dim=1)

    def _random(self, stratum: Stratum, number: int) -> torch.Tensor:
        """Return points of a stratum (number, arguments)."""
        low, high = stratum.low, stratum.high
        even = self._integers(low, high, number - number // 2)
        ends = tensors.from_ordinals(torch.tensor([low, high]), self.fmt).double()
        share = torch.rand(number // 2, generator=self._generator, dtype=torch.float64)
        # Halved, because the distance of the two largest values overflows.
        linear = (ends[0] / 2 * (1 - share) + ends[1] / 2 * share) * 2
        rounded = tensors.ordinals(linear.to(tensors.dtype(self.fmt)), self.fmt)
        x = torch.cat([even, rounded.clamp(low, high)])
        columns = [self._others(number) for _ in self.arguments[1:]]
        columns.insert(self.swept, x)
        return torch.stack(columns, dim=1)

    def _others(self, number: int) -> torch.Tensor:
        """Return another argument from 2^-6 to 2^6, of both signs; every fourth is 1."""
        one = self.fmt.encode(1.0)
        span = 6 << (self.fmt.precision - 1)
        size = self._integers(max(1, one - span), min(self.fmt.largest_bits, one + span), number)
        size[::4] = one
        return size * (self._integers(0, 1, number) * 2 - 1)

    def _integers(self, low: int, high: int, number: int) -> torch.Tensor:
        """Return random integers, both ends included; the range may be wider than an int64."""
        if high - low < 2**62:
            return torch.randint(low, high + 1, (number,), generator=self._generator)
        share = torch.rand(number, generator=self._generator, dtype=torch.float64)
        return (low + (share * float(high - low)).long()).clamp(low, high)

    # Descents: neighbourhoods of shrinking radius around a bad point.

    def _descents(self) -> None:
        for turn in count():
            for stratum in self.strata:
                if self._over(_DESCENTS_UNTIL):
                    return
                # The worst point first, then others in turn and random ones.
                fresh = turn > 0 and float(torch.rand(1, generator=self._generator)) < _FRESH
                if fresh or not stratum.pool:
                    origin = self._random(stratum, 4)[int(self._integers(0, 3, 1))]
                    self._descend(stratum, origin, _WIDE)
                else:
                    origin = torch.tensor(stratum.pool[turn % len(stratum.pool)][1])
                    self._descend(stratum, origin, _NARROW)

    def _descend(self, stratum: Stratum, centre: torch.Tensor, binades: int) -> None:
        best = UNSCORED
        for radius in self._radii(stratum, binades):
            around = self._neighbours(stratum, centre, radius)
            around[0] = centre  # it is left only for a worse one
            scores = self._try(stratum, around, _STEP_LIMIT)
            index = int(scores.argmax())
            if float(scores[index]) > best:
                best, centre = float(scores[index]), around[index]
            if self._over(1.0):
                return

    def _radii(self, stratum: Stratum, binades: int) -> Iterator[int]:
        """Yield the radii, from 2^binades binades or the stratum on."""
        widest = max(1, int(2.0 ** (self.fmt.precision - 1 + binades)))
        radius = min(widest, max(1, (stratum.high - stratum.low) // 2))
        while radius:
            yield radius
            radius >>= _SHRINK_BITS

    def _neighbours(self, stratum: Stratum, centre: torch.Tensor, radius: int) -> torch.Tensor:
        limit = self.fmt.largest_bits
        columns = []
        for index in range(len(self.arguments)):
            offsets = self._integers(-radius, radius, _STEP_POINTS)
            low, high = (stratum.low, stratum.high) if index == self.swept else (-limit, limit)
            columns.append((centre[index] + offsets).clamp(low, high))
        return torch.stack(columns, dim=1)

    # Hypothesis, which climbs towards larger errors from what it has seen.

    def _targeted(self) -> None:
        for turn in count():
            for number, stratum in enumerate(self.strata):
                if self._over(1.0):
                    return
                self._climb(stratum, self.seed + 1000 * turn + number)

    def _block(self, stratum: Stratum, point: tuple[int, ...]) -> torch.Tensor:
        """Return a point and its neighbours in x: as many as the kernel computes at once."""
        block = torch.tensor([point]).repeat(LANES, 1)
        block[:, self.swept] += torch.arange(LANES) - LANES // 2
        block[:, self.swept].clamp_(stratum.low, stratum.high)
        return block

    def _climb(self, stratum: Stratum, seed: int) -> None:
        from hypothesis import strategies as st

        def score(point: tuple[int, ...]) -> float:
            return float(self._try(stratum, self._block(stratum, point), _EXAMPLE_LIMIT).max())

        limit = self.fmt.largest_bits
        ranges = [(-limit, limit) for _ in self.arguments[1:]]
        ranges.insert(self.swept, (stratum.low, stratum.high))
        points = st.tuples(*(st.integers(*ends) for ends in ranges))
        label = "log2 of the error in ULP"
        climb(points, score, label, lambda: self._over(1.0), _EXAMPLES, seed)
