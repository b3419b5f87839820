"""Aliasing: a result is new memory, and stays as it is whatever is called after it.

So does what backward needs: a forward of other values between a forward and its backward changes no
gradient.
"""

from __future__ import annotations

from collections.abc import Iterator

from torch import Tensor

from gelu_verify.checks.case import Outcome
from gelu_verify.checks.fused.case import FusedCase
from gelu_verify.checks.fused.difference import difference
from gelu_verify.checks.fused.differentiation import cotangent, gradients, leaves
from gelu_verify.checks.fused.examine import examine
from gelu_verify.inputs.problems import Problem, ladder

_SIZES = (1, 33, 64)

Results = dict[str, Tensor]


def run(case: FusedCase) -> Outcome:
    """Examine results and gradients at a few sizes."""
    sizes = ladder.cubes(case.operator, _SIZES, case.job.seed)
    held = (
        "results and gradients share no storage with arguments or with those of another call, "
        "and a later call does not change them, nor what a backward to come needs"
    )
    return examine(case, "aliasing", case.asked_or(sizes), _faults, held)


def _faults(case: FusedCase, problem: Problem) -> list[str]:
    """Call twice on the same arguments and once on others, and compare storages and values."""
    inputs = case.inputs(problem)
    first = results(case, problem, inputs)
    before = {name: part.clone() for name, part in first.items()}
    again = results(case, problem, inputs)
    results(case, problem, tuple(-part for part in inputs))
    found = []
    for name, part in first.items():
        found += [
            f"{name} shares storage with argument {argument}"
            for argument, given in zip(case.operator.arguments, inputs, strict=True)
            if _shared(part, given)
        ]
        if name in again and _shared(part, again[name]):
            found.append(f"two calls return {name} in the same storage")
        changed = difference(before[name], part, case.subject.fmt)
        if changed:
            found.append(f"a later call changed {name} of an earlier one in {changed}")
    if not found and not case.job.spec.nondeterministic:
        found += _interleaved(case, problem, inputs, before)
    return found


def _interleaved(
    case: FusedCase, problem: Problem, inputs: tuple[Tensor, ...], before: Results
) -> Iterator[str]:
    """Say which gradients a forward of other values changes that comes before their backward."""
    if len(before) == 1:
        return  # no gradient
    arguments = leaves(inputs)
    result = case.call(arguments)
    case.call(leaves(tuple(-part for part in inputs)))
    parts = gradients(result, arguments, cotangent(case, problem, result))
    for name, part in zip(case.operator.arguments, parts or (), strict=False):
        changed = part is not None and difference(before[f"d{name}"], part, case.subject.fmt)
        if changed:
            yield f"a call before backward changes d{name} in {changed}"


def results(case: FusedCase, problem: Problem, inputs: tuple[Tensor, ...]) -> Results:
    """Return the result and, where there are any, the gradients, by name, as the kernel gave them.

    The result comes from a call without autograd.
    """
    found = {"the result": case.call(inputs).detach()}
    arguments = leaves(inputs)
    result = case.call(arguments)
    parts = gradients(result, arguments, cotangent(case, problem, result))
    for name, part in zip(case.operator.arguments, parts or (), strict=False):
        if part is not None:
            found[f"d{name}"] = part.detach()
    return found


def _shared(one: Tensor, other: Tensor) -> bool:
    """Tell whether two tensors that have elements lie in one storage."""
    here, there = one.untyped_storage(), other.untyped_storage()
    return here.nbytes() > 0 and here.data_ptr() == there.data_ptr()
