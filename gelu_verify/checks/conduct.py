"""Conduct: a kernel returns a new tensor of the right kind, leaves its input alone, and repeats.

It must repeat also after other calls, after many, and after one on nothing; and what its forward
keeps for its backward must outlive another forward.
"""

from __future__ import annotations

from dataclasses import replace

import torch

from gelu_verify.checks.case import Case, Outcome
from gelu_verify.formats import tensors
from gelu_verify.kernels.subject import (
    KernelFailure,
    is_refusal,
    require_like,
    through_autograd,
)
from gelu_verify.records import FindingStatus

_POINTS = 4099  # above a Triton block, and no multiple of any vector width
#: Elements at each end of the sweep, where a kernel may return x, dy or one kept zero.
_END = 64
#: Calls on a few elements before the last comparison; in an interpreter a call takes some 25 ms.
_CALLS = 256
_SIMULATED_CALLS = 16

Arguments = tuple[torch.Tensor, ...]


def run(case: Case) -> Outcome:
    """Call the kernel again and again, and once on nothing, and look at what it did."""
    outcome = Outcome()
    problems = [*_repeat(case), *_saturated(case), *_empty(case), *_interleaved(case)]
    for message in problems:
        outcome.findings.append(case.finding("conduct", FindingStatus.FAILED, message))
    if not problems:
        message = "shape, dtype and device right; inputs unchanged; no shared storage; repeatable"
        outcome.findings.append(case.finding("conduct", FindingStatus.PASSED, message))
    return outcome


def _values(case: Case) -> Arguments:
    picks = torch.linspace(0, case.sweep.x.numel() - 1, _POINTS).long().unique()
    return tuple(part[picks].to(case.subject.device) for part in case.sweep.inputs)


def _called(case: Case, arguments: Arguments) -> torch.Tensor:
    subject = case.subject
    result = subject.apply(*arguments)
    require_like(result, arguments[-1].shape, subject.dtype, subject.device)
    return result


def _bits(case: Case, result: torch.Tensor) -> torch.Tensor:
    """Return a copy of the patterns of a result."""
    return tensors.to_bits(result.detach(), case.subject.fmt).clone()


def _repeat(case: Case) -> list[str]:
    """Call twice in a row, then after a call on other values, then after many calls."""
    arguments = _values(case)
    before = [_bits(case, part) for part in arguments]
    first = _called(case, arguments)
    bits = _bits(case, first)
    second = _called(case, arguments)
    problems = [
        f"argument {name} was overwritten"
        for name, part, kept in zip(case.subject.operator.arguments, arguments, before, strict=True)
        if not torch.equal(_bits(case, part), kept)
    ]
    if problems:
        return problems  # later calls would be on other values
    if first.untyped_storage().data_ptr() == second.untyped_storage().data_ptr():
        problems.append("two calls return the same storage")
    problems += _sharing(first, arguments)
    if changed := _differing(_bits(case, first), bits):
        problems.append(f"a second call changed {changed} values of the first result")
    if differs := _differing(_bits(case, second), bits):
        problems.append(f"two identical calls differ in {differs} of {bits.numel()} values")
        return problems
    backwards = torch.arange(bits.numel() - 1, -1, -1, device=case.subject.device)
    _called(case, tuple(part[backwards] for part in arguments))  # fp8 has no flip
    _called(case, tuple(part[: _POINTS // 2] for part in arguments))
    if differs := _differing(_bits(case, _called(case, arguments)), bits):
        problems.append(f"identical calls with others between differ in {differs} values")
    calls = _SIMULATED_CALLS if case.subject.simulated else _CALLS
    for _ in range(calls):
        _called(case, tuple(part[:_END] for part in arguments))
    if differs := _differing(_bits(case, _called(case, arguments)), bits):
        problems.append(f"after {calls} calls identical ones differ in {differs} values")
    return problems


def _differing(one: torch.Tensor, other: torch.Tensor) -> int:
    return int((one != other).sum())


def _sharing(result: torch.Tensor, arguments: Arguments) -> list[str]:
    storage = result.untyped_storage().data_ptr()
    if any(storage == part.untyped_storage().data_ptr() for part in arguments):
        return ["the result shares storage with an argument"]
    return []


def _saturated(case: Case) -> list[str]:
    """Call where every result is x, dy or 0: it must be new memory there, too."""
    finite = torch.isfinite(case.sweep.x.double()).nonzero().flatten()
    problems = []
    for end in (finite[:_END], finite[-_END:]):
        arguments = tuple(part[end].to(case.subject.device) for part in case.sweep.inputs)
        first, second = _called(case, arguments), _called(case, arguments)
        problems += [f"saturated input: {text}" for text in _sharing(first, arguments)]
        if first.untyped_storage().data_ptr() == second.untyped_storage().data_ptr():
            problems.append("saturated input: two calls return the same storage")
    return list(dict.fromkeys(problems))


def _empty(case: Case) -> list[str]:
    """Call on no elements, then on some: an invalid launch may poison the call after it."""
    subject = case.subject
    arguments = _values(case)
    bits = _bits(case, _called(case, arguments))
    nothing = tuple(part[:0] for part in arguments)
    try:
        require_like(subject.apply(*nothing), nothing[-1].shape, subject.dtype)
    except KernelFailure as error:
        if is_refusal(error):
            return [f"empty input refused: {error}"]
        return [f"empty input: {error}"]
    try:
        after = _bits(case, _called(case, arguments))
    except KernelFailure as error:
        return [f"the call after an empty one failed: {error}"]
    if differs := _differing(after, bits):
        return [f"the call after an empty one differs in {differs} of {bits.numel()} values"]
    return []


def _interleaved(case: Case) -> list[str]:
    """Run another forward between a forward and its backward."""
    subject = case.subject
    if subject.forward is None:
        return []
    arguments = _values(case)
    bits = _bits(case, _called(case, arguments))
    apart = replace(subject, function=through_autograd(subject.forward, interleaved=True))
    differs = _differing(_bits(case, apart.apply(*arguments)), bits)
    return [f"another forward in between changes the gradient in {differs} values"] * bool(differs)
