"""Opcheck: a registered operator keeps its schema, and is fit for autograd and for tracing.

The tests are torch's own (``torch.library.opcheck``): the schema's word on mutation and aliasing,
how autograd is registered, the shapes that its fake gives, and forward and backward traced with
dynamic shapes.
"""

from __future__ import annotations

from typing import Any

import torch

from gelu_verify.checks.case import Outcome
from gelu_verify.checks.fused.case import FusedCase
from gelu_verify.checks.fused.differentiation import cotangent, gradients, leaves
from gelu_verify.checks.fused.examine import examine
from gelu_verify.inputs.problems import Problem, ladder
from gelu_verify.records import FindingStatus

_HELD = "SUCCESS"


def run(case: FusedCase) -> Outcome:
    """Run torch's tests of an operator; skipped for what is none."""
    if registered(case.subject.function) is None:
        reason = "the kernel is no registered torch operator"
        return Outcome([case.finding("opcheck", FindingStatus.SKIPPED, reason)])
    problems = case.asked_or((ladder.rectangle(case.operator, case.job.seed),))
    held = (
        "test_schema, test_autograd_registration, test_faketensor and test_aot_dispatch_dynamic "
        "of torch.library.opcheck hold"
    )
    return examine(case, "opcheck", problems, _faults, held)


def _faults(case: FusedCase, problem: Problem) -> list[str]:
    """Return a sentence for each test that fails; all run with a gradient if there is one."""
    inputs = case.inputs(problem)
    arguments = leaves(inputs)
    result = case.call(arguments)
    differentiable = gradients(result, arguments, cotangent(case, problem, result)) is not None
    given = arguments if differentiable else inputs
    operator = registered(case.subject.function)
    found = torch.library.opcheck(operator, given, raise_exception=False)
    held = [name for name, said in found.items() if said == _HELD]
    return [
        f"{name}: {type(said).__name__}: {' '.join(str(said).split())[:300]} "
        f"({', '.join(held) or 'no other test'} held)"
        for name, said in found.items()
        if said != _HELD
    ]


def registered(function: Any) -> Any:
    """Return what ``opcheck`` takes of a kernel, None if it is no registered operator."""
    if isinstance(function, torch._ops.OpOverloadPacket):
        return function.default if "default" in function.overloads() else None
    kinds = (torch._ops.OpOverload, torch._library.custom_ops.CustomOpDef)
    return function if isinstance(function, kinds) else None
