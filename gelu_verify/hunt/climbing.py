"""What the searches over inputs and over cases share: Hypothesis's climb, and telling how far."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from typing import Any

from gelu_verify.kernels.subject import KernelFailure

#: Score of what was not measured: a point that gave NaN, a case that was refused or says nothing.
UNSCORED = -math.inf


def climb(
    strategy: Any, score: Callable[[Any], float], label: str, over: Callable[[], bool],
    examples: int, seed: int,
) -> None:  # fmt: skip
    """Let Hypothesis draw from a strategy, and climb towards larger scores from what it has seen.

    over: whether the time is, asked before every example. Raises what the kernel raised.
    """
    import hypothesis

    failures: list[KernelFailure] = []

    @hypothesis.seed(seed)
    @hypothesis.settings(
        max_examples=examples,
        database=None,
        deadline=None,
        phases=[hypothesis.Phase.generate, hypothesis.Phase.target],
        suppress_health_check=list(hypothesis.HealthCheck),
    )
    @hypothesis.given(strategy)
    def example(drawn: Any) -> None:
        if failures or over():
            return
        try:
            found = score(drawn)
        except KernelFailure as error:
            failures.append(error)
            return
        if found > UNSCORED:
            hypothesis.target(found, label=label)

    example()
    if failures:
        raise failures[0]


def at_most_every(seconds: float, tell: Callable[[], None]) -> Callable[[], None]:
    """Return ``tell``, for calling often: it does nothing until that long after the last time."""
    told = time.monotonic()

    def perhaps() -> None:
        nonlocal told
        if time.monotonic() - told > seconds:
            tell()
            told = time.monotonic()

    return perhaps
