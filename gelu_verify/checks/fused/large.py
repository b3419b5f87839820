"""Large sizes: indices beyond 2^15, 2^16 and 2^31 reach the element they mean.

Each dimension in turn is longer than 2^15 and than 2^16, the others are short, and every element is
judged by its bound; a long sum has zeros between its ends. Where work grows with the square of a
dimension (attention's length) it is chosen rows, and lengths for which the kernel would take too
long, or too much memory, are noted. On CUDA the rows are so many that arguments and result have
more than 2^31 elements: few distinct rows are repeated, and chosen rows (the first, the last, and
those around every power of two that an index may wrap at) are judged by the bound of the row they
repeat.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from gelu_verify.checks.case import Outcome
from gelu_verify.checks.fused import long_rows, rows
from gelu_verify.checks.fused.case import FusedCase
from gelu_verify.checks.fused.difference import difference
from gelu_verify.checks.fused.examine import examine
from gelu_verify.checks.fused.ratios import judged
from gelu_verify.inputs.problems import Problem, ladder
from gelu_verify.kernels.subject import KernelFailure, is_refusal
from gelu_verify.records import Finding, FindingStatus

_LENGTHS = (2**15 + 1, 2**16 + 1)
#: In an interpreter a row of tiles takes a millisecond.
_SIMULATED_LENGTHS = (2**9 + 1,)
_LONG = 2**8
_SHORT = 3
#: Where the cost of a dimension of squared work is seen.
_PROBE = 2**12 + 1
#: The length of such a dimension at the depth quick.
_QUICK = 2**11 + 1
#: Elements: beyond it an index needs more than 32 bits.
LIMIT = 2**31
#: Distinct rows: a prime, so that a wrapped index meets another row.
_DISTINCT = 4099
_WIDTH = 64
_AROUND = 48
#: Copies of arguments and result that must fit: theirs, and intermediate ones in fp32.
_ROOM = 6


def run(case: FusedCase) -> Outcome:
    """Judge long dimensions, then more elements than 32 bits count."""
    lengths = _SIMULATED_LENGTHS if case.subject.simulated else _LENGTHS
    if case.job.depth == "quick":
        lengths = lengths[-1:]  # what wraps at less wraps there, too
    # A dimension that is long enough at less comes once.
    own = tuple(
        dict.fromkeys(
            problem
            for length in lengths
            for problem in ladder.long(case.operator, length, _SHORT, case.job.seed)
        )
    )
    noted: list[Finding] = []
    if not case.job.cases:
        squared, noted = _squared(case, lengths)
        own += squared
    asked = case.problems if case.job.cases else own
    problems = tuple(p for p in asked if max(size for _, size in p.dims) > _LONG)
    if not problems:
        return Outcome()
    held = f"one dimension of {' and of '.join(f'{n:,}' for n in lengths)}: within the bound"
    outcome = examine(case, "large", problems, _faults, held)
    outcome.findings += noted
    if not case.job.cases:
        outcome.findings.append(_indexed(case))
    return outcome


def _squared(
    case: FusedCase, lengths: tuple[int, ...]
) -> tuple[tuple[Problem, ...], list[Finding]]:
    """Return the long cases of a dimension of squared work that the kernel can take, and a note.

    What a longer call would need is foreseen from one at 2^12 + 1, which is judged too.
    """
    found = [ladder.long_squared(case.operator, n, case.job.seed) for n in lengths]
    wanted = [problem for problem in found if problem is not None]
    probe = ladder.long_squared(case.operator, _PROBE, case.job.seed)
    if probe is None or case.subject.simulated:
        return tuple(wanted), []
    if case.job.depth == "quick":
        short = ladder.long_squared(case.operator, _QUICK, case.job.seed)
        return (short,) if short else (), []
    try:
        cost = long_rows.cost(case, probe)
    except KernelFailure as error:
        if not is_refusal(error):
            raise
        return (probe,), []  # refused again where it is judged, and noted there
    reasons = [cost.hindrance(length, case.subject.device) for length in lengths]
    taken = [problem for problem, why in zip(wanted, reasons, strict=True) if not why]
    name = ladder.squared(case.operator)
    said = [f"{name} of {n:,} {why}" for n, why in zip(lengths, reasons, strict=True) if why]
    if not said:
        return (probe, *taken), []
    message = f"not tried: {'; '.join(said)}; {name} of {_PROBE:,} is judged"
    return (probe, *taken), [case.finding("large", FindingStatus.NOTED, message)]


def _faults(case: FusedCase, problem: Problem) -> list[str]:
    if case.is_long(problem):
        found = long_rows.judged(case, problem)
    else:
        inputs = _ends_alone(case, problem)
        exact = case.operator.forward(inputs, case.job.formula, case.arithmetic)
        found = judged(case.call(inputs), exact, case.subject.fmt, case.contract, str(problem))
    longest = max(problem.dims, key=lambda dim: dim[1])
    return [f"{longest[0]} of {longest[1]:,}: {message}" for message in found.faults.values()]


def _ends_alone(case: FusedCase, problem: Problem) -> tuple[Tensor, ...]:
    """Return the arguments, zero along a long sum but for its ends.

    The bound of a long sum is wide, and a lost term would hide in it; zeros cost it nothing.
    """
    inputs, name = case.inputs(problem), case.operator.summed
    length = dict(problem.dims).get(str(name), 0)
    if name is None or length <= _LONG:
        return inputs
    places = rows.places(case.operator, problem, name)
    return tuple(
        part if axis is None else _hollow(part, axis)
        for part, axis in zip(inputs, places, strict=True)
    )


def _hollow(part: Tensor, axis: int) -> Tensor:
    """Return the ends along an axis alone, times a power of two that makes their largest about 1.

    A recipe may have scaled them down for a sum that is long no more.
    """
    largest = float(part.double().abs().max()) or 1.0
    hollow = part * 2.0 ** -math.frexp(largest)[1]
    hollow.narrow(axis, _SHORT, part.shape[axis] - 2 * _SHORT).zero_()
    return hollow


def _indexed(case: FusedCase) -> Finding:
    """Judge more than 2^31 elements, where there is a device with room for them."""
    reason = _hindrance(case)
    if reason:
        message = f"more than 2^31 elements: {reason}"
        return case.finding("large", FindingStatus.SKIPPED, message)
    try:
        return beyond(case, LIMIT)
    except KernelFailure as error:
        if isinstance(error.__cause__, torch.OutOfMemoryError):
            message = f"more than 2^31 elements: the kernel ran out of memory ({error})"
        elif is_refusal(error):
            message = f"more than 2^31 elements refused: {error}"
            return case.finding("large", FindingStatus.NOTED, message)
        else:
            raise
    except torch.OutOfMemoryError as error:
        message = f"more than 2^31 elements: no memory to judge them ({str(error)[:80]})"
    return case.finding("large", FindingStatus.SKIPPED, message)


def _hindrance(case: FusedCase) -> str:
    """Say why more than 2^31 elements cannot be tried; empty if they can."""
    device = case.subject.device
    if device.type != "cuda":
        return "only on a CUDA device"
    if case.operator.rows is None:
        return rows.NO_ROWS
    plan = _Plan.of(case, LIMIT)
    needed = plan.elements * (case.subject.fmt.bits // 8) * _ROOM
    free, _ = torch.cuda.mem_get_info(device)
    if free < needed:
        return f"needs {needed / 2**30:.0f} GiB of free memory, there are {free / 2**30:.0f}"
    return ""


@dataclass(frozen=True)
class _Plan:
    """A small case whose rows are repeated, up to ``count`` rows.

    places, axis: where the rows are in each argument and in the result. elements: of arguments and
    result together. widths: elements of a row, of each argument that has rows and of the result.
    """

    problem: Problem
    places: tuple[int | None, ...]
    axis: int
    count: int
    elements: int
    widths: tuple[int, ...]

    @classmethod
    def of(cls, case: FusedCase, limit: int) -> _Plan:
        """Return rows so many that arguments with rows, and the result, exceed a limit."""
        operator = case.operator
        distinct = min(_DISTINCT, limit // _WIDTH // 4 + 3)
        problem = rows.problem_of(case, distinct, distinct * _WIDTH**2, widest=_WIDTH)
        assert problem is not None
        places, axis = rows.axes(operator, problem)
        shapes = operator.shapes(dict(problem.dims))
        sizes = [
            torch.Size(shape).numel() // distinct
            for shape, place in zip(shapes, places, strict=True)
            if place is not None
        ]
        widths = (*sizes, torch.Size(operator.output_shape(shapes)).numel() // distinct)
        count = limit // min(width for width in widths if width) + _AROUND + 1
        return cls(problem, places, axis, count, count * sum(widths), widths)

    def chosen(self, limit: int) -> Tensor:
        """Return the rows to judge (int64): the ends, and around where an index may wrap.

        In elements and in bytes an index of 31 or 32 bits wraps at the limit, at twice it, and at
        a half, a quarter and an eighth of it.
        """
        around = torch.arange(-_AROUND, _AROUND)
        marks = [2 * limit // 2**halved // width for width in self.widths for halved in range(5)]
        near = torch.cat([around + mark for mark in (0, *marks, self.count)])
        return near[(near >= 0) & (near < self.count)].unique()


def beyond(case: FusedCase, limit: int) -> Finding:
    """Judge chosen rows of a call whose arguments and result have more elements than a limit."""
    plan = _Plan.of(case, limit)
    small = case.inputs(plan.problem)
    exact = case.operator.forward(small, case.job.formula, case.arithmetic)
    distinct = dict(plan.problem.dims)[str(case.operator.rows)]
    repeated = tuple(
        part if place is None else _repeated(part, place, distinct, plan.count)
        for part, place in zip(small, plan.places, strict=True)
    )
    chosen = plan.chosen(limit).to(case.subject.device)
    picked = case.call(repeated).detach().index_select(plan.axis, chosen)
    del repeated
    same = exact.map(
        lambda part: part.expand_as(exact.value).index_select(plan.axis, chosen % distinct)
    )
    name = f"{plan.count:,} rows, those of {plan.problem} repeated"
    faults = judged(picked, same, case.subject.fmt, case.contract, name).faults
    if faults:
        row = int(chosen[_first_broken(picked, same.value, same.total + same.own, plan.axis)])
        message = f"{name}: first at row {row:,}: {'; '.join(faults.values())}"
        return case.finding("large", FindingStatus.FAILED, message)
    few = case.call(small).detach().index_select(plan.axis, chosen % distinct)
    differs = difference(few, picked, case.subject.fmt)
    bits = f"; {differs} differ from a small call" if differs else ", as in a small call"
    message = f"{name}: {chosen.numel():,} rows judged, within the bound{bits}"
    status = FindingStatus.NOTED if differs else FindingStatus.PASSED
    return case.finding("large", status, message)


def _repeated(part: Tensor, axis: int, distinct: int, count: int) -> Tensor:
    """Return rows 0 to count - 1, row i that of ``i mod distinct``."""
    whole = [1] * part.dim()
    whole[axis] = -(-count // distinct)
    return part.repeat(whole).narrow(axis, 0, count).contiguous()


def _first_broken(actual: Tensor, exact: Tensor, allowed: Tensor, axis: int) -> int:
    """Return which of the rows first leaves its bound, 0 if it is one without a finite bound."""
    broken = ~((actual.double() - exact).abs() <= allowed)
    return int(broken.movedim(axis, 0).reshape(actual.shape[axis], -1).any(1).int().argmax())
