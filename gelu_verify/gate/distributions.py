"""Samples of a run against those of the baselines: one family of tests, one correction.

At the same inputs differences are facts. At other inputs they are tests, and the risk of a false
alarm is that of the whole run (``gelu_verify.statistics.change.Setting``).
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import TypeVar

from gelu_verify.gate.ratchet import Fact, Weight
from gelu_verify.statistics import comparison
from gelu_verify.statistics.change import Change, Comparison
from gelu_verify.statistics.sample import Sample

K = TypeVar("K", bound=Hashable)
_WEIGHTS = {
    Change.SMALL: Weight.SAME,
    Change.BETTER: Weight.BETTER,
    Change.WORSE: Weight.WORSE,
}


def facts(pairs: Mapping[K, tuple[Sample, Sample]]) -> dict[K, list[Fact]]:
    """Return what is different in each pair of samples, before and now."""
    found = {key: comparison.compare(before, now) for key, (before, now) in pairs.items()}
    decided = iter(comparison.holm([one for parts in found.values() for one in parts]))
    return {key: _facts([next(decided) for _ in parts]) for key, parts in found.items()}


def _facts(decided: Sequence[Comparison]) -> list[Fact]:
    return [Fact(_WEIGHTS[one.change], one.sentence()) for one in decided if one.change in _WEIGHTS]
