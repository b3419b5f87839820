"""Build a case for one kernel function, to run single checks on it in this process."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from gelu_verify import contracts, formats, operators
from gelu_verify.checks.case import Case, Outcome
from gelu_verify.inputs import sweep
from gelu_verify.job import Job
from gelu_verify.kernels.spec import KernelSpec
from gelu_verify.kernels.subject import Subject, through_autograd
from gelu_verify.records import Finding, FindingStatus


def job(
    name: str = "bf16",
    formula: str = "erf",
    contract: str = "cancelling",
    operator: str = "gelu",
    via: str | None = None,
    **more: Any,
) -> Job:
    spec = more.pop("spec", KernelSpec(name="k.py:f", target="k.py:f", formula=formula))
    return Job(
        spec=spec,
        operator=operator,
        formula=formula,
        format=name,
        contract=contracts.get(contract),
        via=via,
        depth=more.pop("depth", "quick"),
        **more,
    )


def case(function: Callable[..., Any], name: str = "bf16", **options: Any) -> Case:
    """A case as the pipeline makes it, its sweep quick where it is not exhaustive."""
    task = job(name, **options)
    fmt = formats.get(name)
    operator = operators.get(task.operator)
    called = through_autograd(function) if task.via else function
    forward = function if task.via else None
    declared = ("f", task.formula, fmt, torch.device("cpu"), called, operator, task.via, forward)
    subject = Subject(*declared)
    if task.replay:
        return Case(
            task, subject, sweep.replay(fmt, task.replay, operators.place(operator.arguments))
        )
    points = sweep.build(fmt, operator.arguments, sweep.Depth(task.depth), task.seed)
    return Case(task, subject, points)


def backward(function: Callable[..., Any], name: str = "bf16", **options: Any) -> Case:
    return case(function, name, operator="gelu_backward", **options)


def failures(outcome: Outcome) -> list[Finding]:
    return [f for f in outcome.findings if f.status is FindingStatus.FAILED]


def messages(outcome: Outcome) -> str:
    return "\n".join(f"{f.status.value}: {f.message}" for f in outcome.findings)
