"""Memory: an elementwise kernel reads and writes its own tensors alone, and all of its result.

It runs with its arguments, and what it allocates itself, in guard bands of NaN, then of a number
(see :mod:`gelu_verify.kernels.guards`): a result that changes with the bands was computed from
memory that is not the kernel's, an element that is the band's pattern both times was never written.
Operators that are fused ones as well are examined there, over more shapes.
"""

from __future__ import annotations

import torch

from gelu_verify.checks.case import Case, Outcome
from gelu_verify.formats import tensors
from gelu_verify.kernels.guards import NAN, NUMBER, Fill, Guards, repeated_for_compiler
from gelu_verify.kernels.subject import KernelFailure, is_refusal, require_like
from gelu_verify.operators import fused
from gelu_verify.records import FindingStatus

#: A single element, one more than a warp, one more than a Triton block of 1024.
_SIZES = (1, 33, 1025)


def run(case: Case) -> Outcome:
    """Examine a few sizes; a fault is told once, at the first that shows it."""
    outcome = Outcome()
    if case.subject.operator.name in fused.NAMES:
        return outcome
    for size in _SIZES:
        try:
            faults = _faults(case, size)
        except KernelFailure as error:
            if not is_refusal(error):
                raise
            message = f"{size} elements refused: {error}"
            outcome.findings.append(case.finding("memory", FindingStatus.NOTED, message))
            continue
        if faults:
            for fault in faults:
                message = f"{size} elements: {fault}"
                outcome.findings.append(case.finding("memory", FindingStatus.FAILED, message))
            return outcome
    message = "nothing read or written outside of guard bands; results fully written"
    outcome.findings.append(case.finding("memory", FindingStatus.PASSED, message))
    return outcome


def _faults(case: Case, size: int) -> list[str]:
    """Return the faults of one size, under both fills."""
    fmt = case.subject.fmt
    there, faults = _observed(case, size, NAN)
    here, more = _observed(case, size, NUMBER)
    unwritten = there == tensors.signed(NAN.pattern(fmt.bits // 8), fmt)
    unwritten &= here == tensors.signed(NUMBER.pattern(fmt.bits // 8), fmt)
    found = list(dict.fromkeys((*faults, *more)))
    if unwritten.any():
        found.append(f"{int(unwritten.sum())} elements of the result never written")
    differing = (there != here) & ~unwritten
    if differing.any() and torch.equal(_observed(case, size, NAN)[0], there):
        found.append(
            f"{int(differing.sum())} elements of the result depend on memory outside the arguments"
        )
    return found


@repeated_for_compiler
def _observed(case: Case, size: int, fill: Fill) -> tuple[torch.Tensor, list[str]]:
    """Return the patterns of a result (N,) computed in guard bands, and what was done to them."""
    subject, guards = case.subject, Guards(fill)
    finite = torch.isfinite(case.sweep.x.double()).nonzero().flatten()
    picks = finite[torch.linspace(0, finite.numel() - 1, size).long()]
    arguments = tuple(
        guards.holding(f"argument {name}", part[picks].to(subject.device))
        for name, part in zip(subject.operator.arguments, case.sweep.inputs, strict=True)
    )
    with guards.allocator(subject.device):
        result = subject.apply(*arguments)
    require_like(result, arguments[-1].shape, subject.dtype, subject.device)
    return tensors.to_bits(result.detach(), subject.fmt).clone(), guards.faults()
