"""How often the gate's sampled decision rejects a kernel that did not change.

A decision compares two samples of the same kernel, drawn with seeds that no other decision has. A
stored baseline that all of them shared would tie them together: one unlucky baseline would make
all fail or none, and no interval of their rate would hold.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Annotated

from pydantic import Field

from gelu_verify.errors import EmptySampleError
from gelu_verify.records.base import Record
from gelu_verify.statistics import intervals
from gelu_verify.statistics.change import DEFAULT, Change, Comparison, Setting
from gelu_verify.statistics.comparison import compare_samples, holm
from gelu_verify.statistics.distribution import ErrorDistribution
from gelu_verify.statistics.intervals import Interval

#: A seed to the errors of every region, from inputs that no other seed has.
Source = Callable[[int], Mapping[str, ErrorDistribution]]
_LEVELS = (0.05, 0.01, 0.001)
_SEEDS_SHOWN = 20


class AlarmReport(Record):
    """What a number of decisions about an unchanged kernel came to."""

    decisions: Annotated[int, Field(ge=1)]
    first_seed: int = Field(description="decision i compares seeds first + 2i and first + 2i + 1")
    comparisons: int = Field(description="of all decisions together")
    alarms: int = Field(description="decisions that report something worse: false alarms")
    rate: Interval = Field(description="of alarms, Clopper–Pearson")
    significant: int = Field(
        description="decisions with a difference that is significant, whatever its size and way"
    )
    significant_rate: Interval
    alarm_seeds: tuple[int, ...] = Field(description="first seeds of alarms, 20 at most")
    p_values_up_to: dict[str, float] = Field(
        description="level to the fraction of p-values up to it, before any correction: at most "
        "the level, if the tests are valid"
    )


def false_alarms(
    source: Source, decisions: int = 1000, setting: Setting = DEFAULT, first_seed: int = 0
) -> AlarmReport:
    """Return how often a run of one kernel that did not change raises an alarm.

    ``alarms`` is what the gate does at its setting. ``significant`` leaves out the minimum effect,
    so that it checks the risk ``setting.alpha`` of the tests by themselves.
    """
    if decisions < 1:
        raise EmptySampleError(f"decisions: got {decisions}, expected at least one.")
    alarms: list[int] = []
    significant = 0
    p_values: list[float] = []
    for seed in range(first_seed, first_seed + 2 * decisions, 2):
        decided = _decision(source, seed, setting)
        p_values += [c.p_value for c in decided if c.p_value is not None]
        significant += any(c.change is not Change.NONE for c in decided)
        if any(c.change is Change.WORSE for c in decided):
            alarms.append(seed)
    return AlarmReport(
        decisions=decisions,
        first_seed=first_seed,
        comparisons=len(p_values),
        alarms=len(alarms),
        rate=intervals.proportion(len(alarms), decisions),
        significant=significant,
        significant_rate=intervals.proportion(significant, decisions),
        alarm_seeds=tuple(alarms[:_SEEDS_SHOWN]),
        p_values_up_to={
            str(level): sum(p <= level for p in p_values) / len(p_values) for level in _LEVELS
        },
    )


def _decision(source: Source, seed: int, setting: Setting) -> list[Comparison]:
    return holm(compare_samples(source(seed), source(seed + 1), setting), setting)
