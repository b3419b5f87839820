"""Examples: inputs that Hypothesis draws, and the smallest of those that break the contract.

A sweep takes what is known to matter; this takes anything, and reports what is simplest to look at.
It finds faults of single inputs only as often as it draws them, and proves nothing.
"""

from __future__ import annotations

from typing import Any

import torch

from gelu_verify.checks.case import Case, Outcome
from gelu_verify.formats import Format
from gelu_verify.inputs import sweep
from gelu_verify.inputs.special import landmarks
from gelu_verify.measure.error import Class
from gelu_verify.records import Examples, FindingStatus
from gelu_verify.report.numbers import figure

#: One input tuple of bit patterns, one for each argument.
Point = tuple[int, ...]
_LONGEST = 32
_NEAR = 4


def run(case: Case) -> Outcome:
    """Judge drawn inputs; nothing where every bit pattern is run anyway."""
    arguments = case.subject.operator.arguments
    if case.sweep.exhaustive and len(arguments) == 1:
        return Outcome()
    failed = _smallest_failing(case)
    outcome = Outcome()
    count, seed = case.job.examples, case.job.seed
    points = []
    for sample in failed:
        point = case.point(sample)
        message = (
            f"an example of Hypothesis (seed {seed}) breaks {case.contract.name}: off by "
            f"{figure(abs(sample.error_ulp))} ULP: got {point.actual}, exact {point.exact}"
        )
        kind = case.class_of(sample)
        if kind is not Class.NONE:
            message += f" ({kind.label})"
        # Accuracy, found in another way: what excuses one excuses the other.
        outcome.findings.append(case.finding("accuracy", FindingStatus.FAILED, message, sample))
        points.append(point)
    outcome.fields["examples"] = Examples(count=count, seed=seed, failed=tuple(points))
    return outcome


def _smallest_failing(case: Case) -> list[Any]:
    """Return the elements that break the contract in the smallest failing example, if any does."""
    import hypothesis
    from hypothesis import strategies as st

    width = len(case.subject.operator.arguments)
    failing: list[list[Any]] = []

    class Broken(Exception):
        pass

    @hypothesis.seed(case.job.seed)
    @hypothesis.settings(
        max_examples=case.job.examples,
        database=None,  # the file of hard cases is what is kept, legible and replayed first
        deadline=None,
        phases=[hypothesis.Phase.generate, hypothesis.Phase.shrink],
        suppress_health_check=list(hypothesis.HealthCheck),
        report_multiple_bugs=False,
        print_blob=False,
    )
    @hypothesis.given(
        st.lists(st.tuples(*[_patterns(case.subject.fmt)] * width), min_size=1, max_size=_LONGEST)
    )
    def holds(points: list[Point]) -> None:
        broken = _broken(case, tuple(points))
        if broken:
            failing.append(broken)
            raise Broken

    try:
        holds()
    except Broken:
        return failing[-1]  # the smallest is run again last
    return []


def _patterns(fmt: Format) -> Any:
    """Return a strategy for patterns: any, and more often those beside borders and landmarks."""
    from hypothesis import strategies as st

    step = 1 << (fmt.precision - 1)
    fields = st.integers(0, (1 << (fmt.bits - fmt.precision)) - 1).map(lambda field: field * step)
    marks = st.sampled_from(
        sorted({fmt.encode(mark) & (fmt.sign_bit - 1) for mark in landmarks(fmt)})
    )
    beside = st.tuples(fields | marks, st.integers(-_NEAR, _NEAR), st.booleans()).map(
        lambda drawn: ((drawn[0] + drawn[1]) % fmt.sign_bit) | (fmt.sign_bit if drawn[2] else 0)
    )
    return st.integers(0, (1 << fmt.bits) - 1) | beside


def _broken(case: Case, points: tuple[Point, ...]) -> list[Any]:
    """Run points, as often as fills vectors, and return the elements that break the contract."""
    fmt, operator = case.subject.fmt, case.subject.operator
    drawn = sweep.replay(fmt, points, sweep.place(operator.arguments))
    elements = case.measured(drawn.inputs, case.subject.run(*drawn.inputs))
    batch = case.as_batch(elements)
    wrong = case.judged(elements).broken & torch.isfinite(elements.x)
    found = [batch.sample(int(i)) for i in wrong.nonzero().flatten()]
    return list({sample.inputs: sample for sample in found}.values())
