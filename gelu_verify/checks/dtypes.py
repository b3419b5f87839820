"""Dtypes: a kernel given integers, or operands of two dtypes, refuses them or is right.

What is asked is not accuracy but whether an operand was misread or a result truncated, so that the
limit is coarse: an eighth, which every format holds.
"""

from __future__ import annotations

from collections.abc import Iterator

import torch

from gelu_verify.checks.case import Case, Outcome
from gelu_verify.kernels.subject import KernelFailure
from gelu_verify.records import FindingStatus

_RELATIVE = 2.0**-3
_ABSOLUTE = 2.0**-6

Arguments = tuple[torch.Tensor, ...]


def run(case: Case) -> Outcome:
    """Call with integers, then with each argument in turn in another floating-point dtype."""
    outcome = Outcome()
    if case.subject.via:
        return outcome  # autograd itself demands one floating-point dtype
    refused, right = [], []
    for name, inputs in _mixtures(case):
        try:
            result = case.subject.call(*case.subject.operator.shaped(inputs))
        except KernelFailure:
            refused.append(name)
            continue
        if fault := _fault(case, inputs, result):
            message = f"{name}: {fault}; expected that, or a refusal"
            outcome.findings.append(case.finding("dtypes", FindingStatus.FAILED, message))
        else:
            right.append(name)
    if not outcome.findings:
        parts = [f"refused: {', '.join(refused)}"] if refused else []
        parts += [f"right: {', '.join(right)}"] if right else []
        found = case.finding("dtypes", FindingStatus.PASSED, "; ".join(parts))
        outcome.findings.append(found)
    return outcome


def _mixtures(case: Case) -> Iterator[tuple[str, Arguments]]:
    """Yield ``(what is unusual, inputs)``; every number is in every format, x runs from -3 to 3."""
    subject = case.subject
    names = subject.operator.arguments
    x = torch.arange(-6, 7, device=subject.device) / 2
    other = torch.tensor([1.0, 2.0, -1.0], device=subject.device).repeat(5)[: x.numel()]
    values = tuple(x if name in ("x", "gate") else other for name in names)
    yield "int32", tuple(part.round().to(torch.int32) for part in values)
    if len(names) == 1:
        return
    label = "fp32" if subject.fmt.bits != 32 else "bf16"
    dtype = torch.float32 if subject.fmt.bits != 32 else torch.bfloat16
    for index, name in enumerate(names):
        given = [part.to(subject.dtype) for part in values]
        given[index] = values[index].to(dtype)
        yield f"{name} in {label}", tuple(given)


def _fault(case: Case, inputs: Arguments, result: object) -> str | None:
    """Say what is wrong with a result; None if nothing is."""
    if not isinstance(result, torch.Tensor) or result.numel() != inputs[0].numel():
        return f"got {getattr(result, 'shape', type(result).__name__)}, expected one number each"
    wide = tuple(part.cpu().double() for part in inputs)
    exact = case.subject.operator.approximate(wide, case.subject.formula)
    got = result.detach().cpu().double().reshape(-1)
    wrong = (~((got - exact).abs() <= exact.abs() * _RELATIVE + _ABSOLUTE)).nonzero().flatten()
    if not wrong.numel():
        return None
    at = int(wrong[0])
    shown = ", ".join(
        f"{name} = {float(part[at]):g}"
        for name, part in zip(case.subject.operator.arguments, wide, strict=True)
    )
    return f"{shown}: got {float(got[at]):g} ({result.dtype}) for {float(exact[at]):.4g}"
