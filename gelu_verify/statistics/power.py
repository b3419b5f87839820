"""How small a fault the gate's sampled decision still sees: its power, by simulation.

A baseline and a sample are drawn from one pool of measured errors, and the sample is made worse:
all its errors shifted by s ULP, or a fraction of its results replaced by wrong ones. The fault is
in one region alone, where it is hardest to see: the others add nothing but comparisons to correct
for. A comparison counts as an alarm if ``m·p <= alpha``, m the comparisons of the whole run, which
is the first step of Holm's procedure: its later steps can only add to the power given here.
"""

from __future__ import annotations

from collections.abc import Callable
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
_LARGEST = {"shift": 2.0**26, "wrong": 1.0}
_SMALLEST = {"shift": 2.0**-7, "wrong": 2.0**-12}


class Fault(StrEnum):
    """What is wrong with the later sample: errors off by a shift (ULP), or a fraction lost."""

    SHIFT = "shift"
    WRONG = "wrong"


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

            def is_seen(
                size: float,
                errors: np.ndarray = errors,
                fault: Fault = fault,
                random: np.random.Generator = random,
            ) -> bool:
                before = ErrorDistribution.from_errors(random.choice(errors, per_region))
                worse = _with_fault(random.choice(errors, per_region), fault, size, random)
                now = ErrorDistribution.from_errors(worse)
                return _is_alarm(before, now, setting, comparisons)

            found.append(_searched(region, fault, errors, is_seen, trials))
    return PowerReport(
        per_region=per_region,
        comparisons=comparisons,
        wanted=WANTED,
        seed=seed,
        regions=tuple(found),
    )


def _with_fault(
    errors: np.ndarray, fault: Fault, size: float, random: np.random.Generator
) -> np.ndarray:
    """Return errors with the fault; a wrong result has no distance, and is wrong by any limit."""
    if fault is Fault.SHIFT:
        return errors + size
    return np.where(random.random(errors.size) < size, np.nan, errors)


def _is_alarm(
    before: ErrorDistribution, now: ErrorDistribution, setting: Setting, comparisons: int
) -> bool:
    return any(
        comparisons * (c.p_value or 0.0) <= setting.alpha and c.decided().change is Change.WORSE
        for c in compare_samples({"region": before}, {"region": now}, setting)
    )


def _searched(
    region: str,
    fault: Fault,
    errors: np.ndarray,
    is_seen: Callable[[float], bool],
    trials: int,
) -> RegionPower:
    points: dict[float, PowerPoint] = {}

    def is_enough(size: float) -> bool:
        points[size] = _tried(size, is_seen, trials)
        return points[size].detected >= WANTED * trials

    smallest = _smallest(is_enough, _SMALLEST[fault], _LARGEST[fault])
    best = None if smallest is None else points[smallest]
    finite = errors[np.isfinite(errors)]
    return RegionPower(
        region=region,
        fault=fault,
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
