"""How small a fault the gate's sampled decision still sees: its power, by simulation.

A baseline and a sample are drawn from one pool of measured errors, and the sample is made worse:
all its errors shifted by s ULP, or a fraction of its results replaced by wrong ones. The fault is
in one region alone, where it is hardest to see: the others add nothing but comparisons to correct
for. A comparison counts as an alarm if ``m·p <= alpha``, m the comparisons of the whole run, which
is the first step of Holm's procedure: its later steps can only add to the power given here.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from pydantic import Field

from gelu_verify.records.base import Record
from gelu_verify.statistics import intervals
from gelu_verify.statistics.change import DEFAULT, Change, Setting
from gelu_verify.statistics.comparison import compare_samples
from gelu_verify.statistics.distribution import ErrorDistribution
from gelu_verify.statistics.intervals import Interval
from gelu_verify.statistics.pool import Pool

#: Three comparisons for each of eight regions, for twenty kernels and formats: a usual gate.
RUN = 480
TRIALS = 200
WANTED = 0.99
#: Halvings of the bracket: the size found is at most 2^(1/16), 4.4 %, above the smallest.
_HALVINGS = 4


class Fault(StrEnum):
    """What is wrong with the later sample: errors off by a shift (ULP), or a fraction lost."""

    SHIFT = "shift"
    WRONG = "wrong"


_LARGEST = {Fault.SHIFT: 2.0**26, Fault.WRONG: 1.0}
_SMALLEST = {Fault.SHIFT: 2.0**-7, Fault.WRONG: 2.0**-12}


class PowerPoint(Record):
    """How often a fault of one size was seen; a size that fails early has fewer trials."""

    size: float
    detected: int
    trials: int


class RegionPower(Record):
    """The smallest fault of one kind that is seen in one region."""

    region: str
    fault: Fault
    mean_absolute_ulp: float = Field(description="of the errors without the fault")
    smallest: float | None = Field(
        description="smallest size (ULP, or fraction) seen with the wanted power; None: at no size"
    )
    power: Interval | None = Field(description="at that size, Clopper–Pearson")
    curve: tuple[PowerPoint, ...] = Field(description="all sizes tried, ascending")


class PowerReport(Record):
    """The power of a run's decision about one kernel, region by region."""

    per_region: int = Field(description="inputs of a region in each of both samples")
    comparisons: int = Field(description="of the whole run, for which p-values are corrected")
    wanted: float
    seed: int
    regions: tuple[RegionPower, ...]


def power(
    pool: Pool,
    per_region: int,
    setting: Setting = DEFAULT,
    *,
    comparisons: int = RUN,
    trials: int = TRIALS,
    seed: int = 0,
) -> PowerReport:
    """Return the smallest shift and fraction of wrong results seen in every region.

    A size is seen if at least 99 % of ``trials`` raise an alarm; the search doubles it until it is
    and halves the last step on a logarithmic scale.
    """
    found = []
    for number, (region, errors) in enumerate(pool.errors.items()):
        for kind, fault in enumerate(Fault):
            random = np.random.default_rng((seed, number, kind))
            gate = _Gate(errors, fault, per_region, setting, comparisons, random)
            found.append(_searched(region, gate, trials))
    return PowerReport(
        per_region=per_region,
        comparisons=comparisons,
        wanted=WANTED,
        seed=seed,
        regions=tuple(found),
    )


@dataclass(frozen=True)
class _Gate:
    """The decision about one region whose errors, drawn from a pool, get a fault."""

    errors: np.ndarray
    fault: Fault
    per_region: int
    setting: Setting
    comparisons: int
    random: np.random.Generator

    def sees(self, size: float) -> bool:
        """Draw a baseline, and a sample with a fault of that size, and compare them."""
        before = ErrorDistribution.from_errors(self.random.choice(self.errors, self.per_region))
        errors = self.random.choice(self.errors, self.per_region)
        now = ErrorDistribution.from_errors(_with_fault(errors, self.fault, size, self.random))
        return any(
            self.comparisons * (c.p_value or 0.0) <= self.setting.alpha
            and c.decided().change is Change.WORSE
            for c in compare_samples({"region": before}, {"region": now}, self.setting)
        )


def _with_fault(
    errors: np.ndarray, fault: Fault, size: float, random: np.random.Generator
) -> np.ndarray:
    """Return errors with the fault; a wrong result has no distance, and is wrong by any limit."""
    if fault is Fault.SHIFT:
        return errors + size
    return np.where(random.random(errors.size) < size, np.nan, errors)


def _searched(region: str, gate: _Gate, trials: int) -> RegionPower:
    points: dict[float, PowerPoint] = {}

    def is_enough(size: float) -> bool:
        points[size] = _tried(size, gate.sees, trials)
        return points[size].detected >= WANTED * trials

    smallest = _smallest(is_enough, _SMALLEST[gate.fault], _LARGEST[gate.fault])
    best = None if smallest is None else points[smallest]
    finite = gate.errors[np.isfinite(gate.errors)]
    return RegionPower(
        region=region,
        fault=gate.fault,
        mean_absolute_ulp=float(np.abs(finite).mean()) if finite.size else 0.0,
        smallest=smallest,
        power=intervals.proportion(best.detected, best.trials) if best else None,
        curve=tuple(points[size] for size in sorted(points)),
    )


def _tried(size: float, is_seen: Callable[[float], bool], trials: int) -> PowerPoint:
    """Return how often a fault is seen; given up once the wanted power is out of reach."""
    detected = done = 0
    for done in range(1, trials + 1):
        detected += is_seen(size)
        if done - detected > (1 - WANTED) * trials:
            break
    return PowerPoint(size=size, detected=detected, trials=done)


def _smallest(is_enough: Callable[[float], bool], low: float, highest: float) -> float | None:
    """Return the smallest size that is enough, None if none up to ``highest`` is."""
    high = low
    while not is_enough(high):
        if high >= highest:
            return None
        low, high = high, min(2 * high, highest)
    if high == low:
        return high
    for _ in range(_HALVINGS):
        middle = (low * high) ** 0.5
        low, high = (low, middle) if is_enough(middle) else (middle, high)
    return high
