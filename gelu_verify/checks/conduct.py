"""Conduct: a kernel returns a new tensor of the right kind, leaves its input alone, and repeats."""

from __future__ import annotations

import torch

from gelu_verify.checks.case import Case, Outcome
from gelu_verify.formats import tensors
from gelu_verify.kernels.subject import KernelFailure, is_refusal, require_like
from gelu_verify.records import FindingStatus

_POINTS = 4099  # above a Triton block, and no multiple of any vector width


def run(case: Case) -> Outcome:
    """Call the kernel twice on the same values and once on nothing, and look at what it did."""
    outcome = Outcome()
    problems = [*_repeat(case), *_empty(case)]
    for message in problems:
        outcome.findings.append(case.finding("conduct", FindingStatus.FAILED, message))
    if not problems:
        message = "shape, dtype and device right; inputs unchanged; no shared storage; repeatable"
        outcome.findings.append(case.finding("conduct", FindingStatus.PASSED, message))
    return outcome


def _values(case: Case) -> tuple[torch.Tensor, ...]:
    picks = torch.linspace(0, case.sweep.x.numel() - 1, _POINTS).long().unique()
    return tuple(part[picks].to(case.subject.device) for part in case.sweep.inputs)


def _repeat(case: Case) -> list[str]:
    subject = case.subject
    arguments = _values(case)
    before = [tensors.to_bits(part, subject.fmt).clone() for part in arguments]
    first = subject.apply(*arguments)
    require_like(first, arguments[-1].shape, subject.dtype, subject.device)
    first_bits = tensors.to_bits(first.detach(), subject.fmt).clone()
    second = subject.apply(*arguments)
    require_like(second, arguments[-1].shape, subject.dtype, subject.device)
    problems = []
    for name, part, bits in zip(subject.operator.arguments, arguments, before, strict=True):
        if not torch.equal(tensors.to_bits(part, subject.fmt), bits):
            problems.append(f"argument {name} was overwritten")
    problems += _aliasing(first, second, arguments)
    changed = tensors.to_bits(first.detach(), subject.fmt) != first_bits
    if changed.any():
        problems.append(f"a second call changed {int(changed.sum())} values of the first result")
    differs = tensors.to_bits(second.detach(), subject.fmt) != first_bits
    if differs.any():
        problems.append(
            f"two identical calls differ in {int(differs.sum())} of {first_bits.numel()} values"
        )
    return problems


def _aliasing(
    first: torch.Tensor, second: torch.Tensor, arguments: tuple[torch.Tensor, ...]
) -> list[str]:
    storage = first.untyped_storage().data_ptr()
    problems = []
    if storage == second.untyped_storage().data_ptr():
        problems.append("two calls return the same storage")
    if any(storage == part.untyped_storage().data_ptr() for part in arguments):
        problems.append("the result shares storage with an argument")
    return problems


def _empty(case: Case) -> list[str]:
    """Call on no elements, then on some: an invalid launch may poison the call after it."""
    subject = case.subject
    arguments = _values(case)
    nothing = tuple(part[:0] for part in arguments)
    try:
        require_like(subject.apply(*nothing), nothing[-1].shape, subject.dtype)
    except KernelFailure as error:
        if is_refusal(error):
            return [f"empty input refused: {error}"]
        return [f"empty input: {error}"]
    try:
        subject.apply(*arguments)
    except KernelFailure as error:
        return [f"the call after an empty one failed: {error}"]
    return []
