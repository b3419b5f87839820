"""Memory: a kernel reads and writes its own tensors alone, all of its result, and no input.

Every case runs with its arguments in guard bands of NaN, then of a number (see
:mod:`gelu_verify.kernels.guards`): with what the kernel allocates itself guarded too, then into an
``out`` buffer where it takes one, then on its usual route (a compiled graph runs as such only
there). A result that changes with the bands was computed from memory that is not the kernel's; an
element that is the band's pattern both times was never written.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import nullcontext
from dataclasses import dataclass, field
from functools import partial

import torch
from torch import Tensor

from gelu_verify.checks.case import Outcome
from gelu_verify.checks.fused.case import FusedCase
from gelu_verify.checks.fused.difference import Difference, difference
from gelu_verify.checks.fused.differentiation import (
    ONCE_COMPILED,
    Gradients,
    cotangent,
    gradients,
    leaves,
)
from gelu_verify.checks.fused.examine import examine
from gelu_verify.formats import tensors
from gelu_verify.inputs.problems import Problem, ladder
from gelu_verify.kernels.failure import KernelFailure
from gelu_verify.kernels.guards import NAN, NUMBER, Fill, Guards, repeated_for_compiler, takes_out

_SIZES = (1, 2, 17, 33, 64)


@dataclass
class Seen:
    """What one run under guards gave, by name, and what it did to memory."""

    results: dict[str, Tensor] = field(default_factory=dict)
    faults: list[str] = field(default_factory=list)


Run = Callable[[FusedCase, Problem, Fill], Seen]


def run(case: FusedCase) -> Outcome:
    """Examine a ladder of sizes."""
    operator, seed = case.operator, case.job.seed
    sizes = (*ladder.cubes(operator, _SIZES, seed), ladder.rectangle(operator, seed))
    held = (
        "nothing read or written outside of guard bands; results fully written; arguments and "
        "saved tensors unchanged after forward, backward and a second backward"
    )
    return examine(case, "memory", case.asked_or(sizes), _faults, held)


def _faults(case: FusedCase, problem: Problem) -> list[str]:
    """Return the faults of the first way to run that has any.

    Guarded ones come first: a stray write next to unguarded memory may end the process.
    """
    runs: list[Run] = [partial(_observed, guarded=True)]
    if takes_out(case.subject.function):
        runs.append(_into_out)
    runs.append(partial(_observed, guarded=False))
    found = (_compared(case, problem, observed) for observed in runs)
    return list(dict.fromkeys(next(filter(None, found), [])))


def _compared(case: FusedCase, problem: Problem, observed: Run) -> list[str]:
    """Return the faults of one way to run, under both fills."""
    fmt = case.subject.fmt
    nan, number = observed(case, problem, NAN), observed(case, problem, NUMBER)
    found = [*nan.faults, *number.faults]
    again: Seen | None = None
    for name, there in nan.results.items():
        here = number.results[name]
        unwritten = _still(there, NAN, case) & _still(here, NUMBER, case)
        if unwritten.any():
            index = unwritten.nonzero()[0].tolist()
            count = int(unwritten.sum())
            found.append(
                f"{name}: {count:,} of {here.numel():,} elements never written, first at {index}"
            )
            continue
        differs = difference(there, here, fmt)
        if differs is None or _explained(case, there, here):
            continue
        again = again or observed(case, problem, NAN)
        if difference(there, again.results[name], fmt) is None:
            found.append(_read_outside(name, differs))
    return found


def _read_outside(name: str, differs: Difference) -> str:
    return (
        f"{name} depends on memory outside its arguments: with {NAN.reads_as} and with "
        f"{NUMBER.reads_as} there it differs in {differs}"
    )


def _explained(case: FusedCase, there: Tensor, here: Tensor) -> bool:
    """Tell whether a declared order of sums explains a difference: it makes no NaN of numbers.

    Repeating the call cannot tell: a random order may well come twice.
    """
    return bool(case.job.spec.nondeterministic) and torch.equal(there.isnan(), here.isnan())


def _still(result: Tensor, fill: Fill, case: FusedCase) -> Tensor:
    """Return which elements still are the pattern of a band."""
    fmt = case.subject.fmt
    pattern = tensors.signed(fill.pattern(fmt.bits // 8), fmt)
    return tensors.to_bits(result, fmt) == pattern


@repeated_for_compiler
def _observed(case: FusedCase, problem: Problem, fill: Fill, guarded: bool) -> Seen:
    """Run forward, and forward and backward twice, with arguments in bands.

    guarded: whether what the kernel allocates is put in bands as well.
    """
    guards, seen = Guards(fill), Seen()
    inputs = tuple(
        guards.holding(f"argument {name}", part)
        for name, part in zip(case.operator.arguments, case.inputs(problem), strict=True)
    )
    with guards.allocator(case.subject.device) if guarded else nullcontext():
        result = case.call(inputs)
        seen.results["the result"] = result.detach().clone()
        _differentiate(case, problem, inputs, guards, seen)
    seen.faults += guards.faults()
    return seen


def _differentiate(
    case: FusedCase, problem: Problem, inputs: tuple[Tensor, ...], guards: Guards, seen: Seen
) -> None:
    """Go backward twice and look at what was saved; nothing where there is no gradient."""
    arguments = leaves(inputs)
    saved: list[tuple[Tensor, Tensor]] = []

    def keep(part: Tensor) -> Tensor:
        saved.append((part.detach(), part.detach().clone()))
        return part

    with torch.autograd.graph.saved_tensors_hooks(keep, lambda part: part):
        result = case.call(arguments)
    dy = guards.holding("dy", cotangent(case, problem, result))
    first, again = _first(result, arguments, dy)
    if first is None:
        return
    for name, part in zip(case.operator.arguments, first, strict=True):
        if part is not None:
            seen.results[f"d{name}"] = part.detach().clone()
    if not again:
        return  # what such a graph saved is its own: torch lets a backward reuse it
    seen.faults += _changed(saved, "backward")
    try:
        second = gradients(result, arguments, dy, retain=True) or ()
    except KernelFailure as error:
        seen.faults.append(f"a second backward through the same graph failed: {error}")
        return
    seen.faults += _changed(saved, "a second backward")
    if not case.job.spec.nondeterministic:
        seen.faults += _repeated(case, seen, second)


def _first(
    result: Tensor, arguments: tuple[Tensor, ...], dy: Tensor
) -> tuple[Gradients | None, bool]:
    """Return the gradients, and whether backward can run again; a compiled graph may not let it."""
    try:
        return gradients(result, arguments, dy, retain=True), True
    except KernelFailure as error:
        if ONCE_COMPILED not in str(error):
            raise
        return gradients(result, arguments, dy), False


def _changed(saved: list[tuple[Tensor, Tensor]], by: str) -> Iterator[str]:
    for part, before in saved:
        same = (part == before) | ((part != part) & (before != before))  # noqa: PLR0124
        if not same.all():
            count = int((~same).sum())
            yield f"{by} changed {count:,} elements of a saved tensor {tuple(part.shape)}"


def _repeated(case: FusedCase, seen: Seen, second: tuple[Tensor | None, ...]) -> Iterator[str]:
    for name, part in zip(case.operator.arguments, second, strict=True):
        if part is None:
            continue
        differs = difference(seen.results[f"d{name}"], part, case.subject.fmt)
        if differs is not None:
            yield f"a second backward gives another d{name}: {differs}"


def _into_out(case: FusedCase, problem: Problem, fill: Fill) -> Seen:
    """Run forward into a buffer of the harness's."""
    guards, seen = Guards(fill), Seen()
    inputs = tuple(
        guards.holding(f"argument {name}", part)
        for name, part in zip(case.operator.arguments, case.inputs(problem), strict=True)
    )
    shape = case.operator.output_shape(tuple(tuple(part.shape) for part in inputs))
    like = torch.empty(shape, dtype=case.subject.dtype, device=case.subject.device)
    out = guards.around("out", like)
    case.subject.call(*inputs, out=out)
    seen.results["out"] = out.detach().clone()
    seen.faults += guards.faults()
    return seen
