"""Dtypes: one argument in another format is refused, or its values are what is computed.

Mixed precision brings an fp32 bias or weight beside 16-bit operands. A kernel that takes it by its
address alone reads halves of numbers. The values are such as both formats hold, so that a kernel
that converts what it is given, either way, is right.
"""

from __future__ import annotations

from collections.abc import Iterator

from torch import Tensor

from gelu_verify import formats, operators
from gelu_verify.bounds import Arithmetic
from gelu_verify.checks.case import Outcome
from gelu_verify.checks.fused.case import FusedCase
from gelu_verify.checks.fused.ratios import judged
from gelu_verify.formats import Format, tensors
from gelu_verify.inputs.problems import Problem, ladder
from gelu_verify.kernels.failure import KernelFailure
from gelu_verify.records import Finding, FindingStatus

_CHECK = "dtypes"
#: Format to the one that an argument has instead: what stands beside it in practice.
_OTHER = {"fp64": "fp32", "fp32": "bf16"}


def run(case: FusedCase) -> Outcome:
    """Give each argument in turn in another format."""
    if case.operator.name in operators.OPERATORS:
        return Outcome()  # the elementwise check of the same name has asked
    problems = case.asked_or((ladder.rectangle(case.operator, case.job.seed),))
    return Outcome([finding for problem in problems for finding in _findings(case, problem)])


def _findings(case: FusedCase, problem: Problem) -> Iterator[Finding]:
    other = formats.get(_OTHER.get(case.subject.fmt.name, "fp32"))
    narrow, wide = sorted((case.subject.fmt, other), key=lambda fmt: fmt.bits)
    values = problem.inputs(case.operator, narrow, case.subject.device)
    own = tuple(part.to(case.subject.dtype) for part in values)
    said = []
    for index, name in enumerate(case.operator.arguments):
        mixed = (*own[:index], own[index].to(tensors.dtype(other)), *own[index + 1 :])
        fault = _fault(case, problem, mixed, narrow, wide)
        if fault:
            message = f"{name} in {other.name} is misread: {fault}"
            yield case.finding(_CHECK, FindingStatus.FAILED, message, problem)
            return
        said.append(f"{name} {'refused' if fault is None else 'taken and right'}")
    message = f"one argument in {other.name}: {', '.join(said)}"
    yield case.finding(_CHECK, FindingStatus.PASSED, message)


def _fault(
    case: FusedCase, problem: Problem, mixed: tuple[Tensor, ...], narrow: Format, wide: Format
) -> str | None:
    """Say what is wrong with the result; empty for nothing, None where the kernel refuses.

    Any exception is a refusal here: what matters is that no number comes back.
    """
    try:
        result = case.subject.call(*mixed)
    except KernelFailure:
        return None
    shape = case.operator.output_shape(tuple(tuple(part.shape) for part in mixed))
    known = {tensors.dtype(fmt): fmt for fmt in (narrow, wide)}
    if not isinstance(result, Tensor) or result.dtype not in known or result.shape != shape:
        got = f"{result.dtype} {tuple(result.shape)}" if isinstance(result, Tensor) else result
        return f"got {got}, expected {' or '.join(map(str, known))} {tuple(shape)}"
    spec, contract = case.job.spec.arithmetic, case.contract
    arithmetic = Arithmetic.of(narrow, contract, case.job.device, spec)
    exact = case.operator.forward(mixed, case.job.formula, arithmetic)
    told = judged(result, exact, known[result.dtype], contract, str(problem)).told()
    return told[1] if told else ""
