"""What every check takes (a case) and gives (an outcome)."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import torch

from gelu_verify import describe
from gelu_verify.allowances import strength
from gelu_verify.contracts import Contract
from gelu_verify.elements import Elements
from gelu_verify.exhaustive import transport
from gelu_verify.exhaustive.census import Census
from gelu_verify.formats import tensors
from gelu_verify.inputs.sweep import Sweep
from gelu_verify.job import Job, reproduce
from gelu_verify.judge import Verdicts, judge
from gelu_verify.kernels.subject import Subject
from gelu_verify.measure.error import Class, measure
from gelu_verify.measure.regions import Regions
from gelu_verify.measure.summary import Batch, Sample
from gelu_verify.records import Finding, FindingStatus, Point


@dataclass
class Outcome:
    """What a check found: findings, and fields of the result record (``accuracy`` and so on)."""

    findings: list[Finding] = field(default_factory=list)
    fields: dict[str, Any] = field(default_factory=dict)


@dataclass
class Case:
    """One kernel, operator, formula, format, device and contract, with the sweep's results.

    The sweep runs once, when first needed, on the contiguous route.
    """

    job: Job
    subject: Subject
    sweep: Sweep
    #: Significant bits of x that reach the kernel, where they are fewer than the format's: inputs
    #: with more say nothing about it.
    input_bits: int | None = None

    @property
    def contract(self) -> Contract:
        """What the kernel promises."""
        return self.job.contract

    @cached_property
    def regions(self) -> Regions:
        """The regions of x for this function and format."""
        subject = self.subject
        return Regions.of(subject.formula, subject.fmt, subject.operator.derivative)

    @cached_property
    def census(self) -> Census | None:
        """What a campaign over every input of fp32 found, where one was run."""
        return None if self.pairs else self._campaign

    @cached_property
    def pairs(self) -> Census | None:
        """What a campaign over every pair of 16-bit arguments found, where one was run."""
        return self._campaign if self.subject.fmt.bits == 16 else None

    @cached_property
    def _campaign(self) -> Census | None:
        return transport.loads(self.job.census) if self.job.census else None

    @cached_property
    def elements(self) -> Elements:
        """The sweep's results, measured."""
        return self.measured(self.sweep.inputs, self.subject.run(*self.sweep.inputs))

    @cached_property
    def batch(self) -> Batch:
        """The sweep's results as a summary takes them."""
        return self.as_batch(self.elements)

    def measured(self, inputs: tuple[torch.Tensor, ...], actual: torch.Tensor) -> Elements:
        """Compare results (N,) with the exact values of the declared formula."""
        s = self.subject
        exact = s.operator.exact(inputs, s.formula, s.fmt)
        return Elements(s.operator, s.formula, s.fmt, inputs, actual, measure(actual, exact, s.fmt))

    def as_batch(self, elements: Elements) -> Batch:
        """Return the bit patterns, regions and errors of measured elements."""
        fmt = self.subject.fmt
        regions = torch.where(torch.isfinite(elements.x), self.regions.codes(elements.x), -1)
        patterns = tuple(tensors.to_bits(part, fmt) for part in elements.inputs)
        return Batch(patterns, tensors.to_bits(elements.actual, fmt), regions, elements.errors)

    def judged(self, elements: Elements) -> Verdicts:
        """Apply the case's contract."""
        return judge(self.contract, elements)

    def point(self, sample: Sample) -> Point:
        """Describe one element for people, its exact value from the oracle."""
        s = self.subject
        return describe.point(sample, s.operator, s.formula, s.fmt)

    def class_of(self, sample: Sample) -> Class:
        """Return the class of failure of one element."""
        return Class(int(self._again(sample).errors.classes[0]))

    def _again(self, sample: Sample) -> Elements:
        """Measure one element by itself."""
        fmt = self.subject.fmt
        patterns = (*sample.inputs, sample.actual)
        *inputs, actual = (tensors.from_bits(torch.tensor([p]), fmt) for p in patterns)
        return self.measured(tuple(inputs), actual)

    def reproduce(self, *points: Point) -> str | None:
        """Return the command line that shows a finding again."""
        return reproduce(self.job, [tuple(point.bits.values()) for point in points])

    def finding(
        self,
        check: str,
        status: FindingStatus,
        message: str,
        sample: Sample | None = None,
        other: Sample | None = None,
    ) -> Finding:
        """Build a finding; one that failed carries its input and how to see it again.

        other: a second element without which the fault of ``sample`` does not show.
        """
        point = self.point(sample) if sample else None
        shown = point.shown if point else None
        failed = status is FindingStatus.FAILED
        points = [self.point(other)] if other else []
        points += [point] if point else []
        return Finding(
            check=check,
            status=status,
            message=message,
            input=shown,
            reproduce=self.reproduce(*points) if failed else None,
            # Of two elements it is neither's own error that is at fault.
            strength=self._strength(sample) if failed and sample and not other else None,
        )

    def _strength(self, sample: Sample) -> float | None:
        """Return the error of one element over what the contract permits.

        None where the fault is no size: NaN, an infinity, a sign of zero.
        """
        ratio = float(strength(self.contract, self._again(sample))[0])
        return ratio if 1.0 < ratio < math.inf else None
