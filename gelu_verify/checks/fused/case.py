"""What every check of a fused kernel takes: the kernel, its cases, and how to judge a result."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import cached_property

import torch
from torch import Tensor

from gelu_verify.bounds import Arithmetic
from gelu_verify.contracts import Contract
from gelu_verify.inputs.problems import Problem, ladder, parse
from gelu_verify.inputs.problems.profile import cases
from gelu_verify.job import Job, reproduce
from gelu_verify.kernels.subject import Callee, require_like
from gelu_verify.operators import fused
from gelu_verify.operators.fused import FusedOperator
from gelu_verify.records import Finding, FindingStatus


@dataclass
class FusedCase:
    """One fused kernel in one format on one device, under one contract."""

    job: Job
    subject: Callee
    #: Cases that the kernel declined itself, as the check of the bound found.
    refused: set[Problem] = field(default_factory=set)

    @property
    def contract(self) -> Contract:
        """What the activation promises."""
        return self.job.contract

    @property
    def operator(self) -> FusedOperator:
        """What the kernel computes."""
        return fused.get(self.job.operator)

    @cached_property
    def arithmetic(self) -> Arithmetic:
        """What the bound assumes, with what the kernel declares."""
        s = self.subject
        return Arithmetic.of(s.fmt, self.contract, self.job.device, self.job.spec.arithmetic)

    @cached_property
    def problems(self) -> tuple[Problem, ...]:
        """The cases to judge: those that were asked for, else the list of the depth."""
        if self.job.cases:
            return tuple(parse(text, self.operator) for text in self.job.cases)
        return cases(self.operator, self.job.depth, self.job.seed)

    @property
    def accepted(self) -> tuple[Problem, ...]:
        """The cases that the kernel does not decline, without those that are long."""
        return tuple(p for p in self.problems if p not in self.refused and not self.is_long(p))

    def asked_or(self, own: tuple[Problem, ...]) -> tuple[Problem, ...]:
        """Return the cases that were asked for, without those that are long, or a check's own."""
        return tuple(p for p in self.problems if not self.is_long(p)) if self.job.cases else own

    def is_long(self, problem: Problem) -> bool:
        """Tell whether only chosen rows of a case can be judged (see :mod:`.long_rows`)."""
        return ladder.is_long(self.operator, problem)

    def inputs(self, problem: Problem) -> tuple[Tensor, ...]:
        """Return the arguments of a case on the kernel's device."""
        return problem.inputs(self.operator, self.subject.fmt, self.subject.device)

    def call(self, inputs: tuple[Tensor, ...]) -> Tensor:
        """Call the kernel and return its result, shape and dtype checked; no copy is made.

        Raises ``KernelFailure`` or ``ResultFault``.
        """
        result = self.subject.call(*inputs)
        shape = self.operator.output_shape(tuple(tuple(part.shape) for part in inputs))
        require_like(result, torch.Size(shape), self.subject.dtype, self.subject.device)
        assert isinstance(result, Tensor)
        return result

    def finding(
        self,
        check: str,
        status: FindingStatus,
        message: str,
        problem: Problem | str | None = None,
        strength: float | None = None,
    ) -> Finding:
        """Build a finding; one that failed carries its case and how to see it again.

        strength: error over bound, where the finding has a size.
        """
        failed = status is FindingStatus.FAILED
        cases = (str(problem),) if problem else ()
        return Finding(
            check=check,
            status=status,
            message=message,
            input=f"case {problem}" if problem else None,
            reproduce=reproduce(self.job, cases=cases) if failed else None,
            strength=strength if strength is not None and math.isfinite(strength) else None,
        )
