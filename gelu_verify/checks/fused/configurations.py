"""Configurations: what a kernel that ``triton.autotune`` tunes gives in each of them.

Which one runs is settled by timing, so a kernel is right only if it is right in all of them. Each
is forced in turn, while other tuned kernels keep to their first. Other bits than in the first are
noted; a result or a gradient that leaves its bound in any is a failure.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from torch import Tensor

from gelu_verify.checks.case import Outcome
from gelu_verify.checks.fused.aliasing import Results, results
from gelu_verify.checks.fused.case import FusedCase
from gelu_verify.checks.fused.difference import difference
from gelu_verify.checks.fused.differentiation import cotangent
from gelu_verify.checks.fused.ratios import judged
from gelu_verify.inputs.problems import Problem, ladder
from gelu_verify.kernels import autotuning
from gelu_verify.kernels.autotuning import Tuned
from gelu_verify.kernels.subject import KernelFailure, is_refusal
from gelu_verify.records import Finding, FindingStatus

_SIZES = (33, 64)
#: Kernels may tune only what is worth it; a GPU does this in no time.
_SIZE_ON_A_GPU = 512
_ABSENT = "no kernel that triton.autotune tunes ran"

#: Gives what is wrong with results by name, a sentence each.
Judge = Callable[[Results], list[str]]


@dataclass
class _Told:
    """What the cases have shown so far, once for each kernel and configuration."""

    kernels: dict[Tuned, None] = field(default_factory=dict)
    failed: dict[tuple[Tuned, int], Finding] = field(default_factory=dict)
    other_bits: dict[tuple[Tuned, int], str] = field(default_factory=dict)
    unusable: dict[tuple[Tuned, int], str] = field(default_factory=dict)
    ran: set[tuple[Tuned, int]] = field(default_factory=set)


def run(case: FusedCase) -> Outcome:
    """Force every configuration of every tuned kernel that runs, at a few sizes."""
    told = _Told()
    refused: list[Finding] = []
    sizes = (*_SIZES, _SIZE_ON_A_GPU) if case.subject.device.type == "cuda" else _SIZES
    operator, seed = case.operator, case.job.seed
    own = (*ladder.cubes(operator, sizes, seed), ladder.rectangle(operator, seed))
    for problem in case.asked_or(own):
        try:
            _one(case, problem, told)
        except KernelFailure as error:
            if not is_refusal(error):
                raise
            message = f"refused: {problem}: {error}"
            refused.append(case.finding("configurations", FindingStatus.NOTED, message))
    return Outcome([*refused, *_findings(case, told)])


def _one(case: FusedCase, problem: Problem, told: _Told) -> None:
    """Run one case in every configuration of the kernels that it meets."""
    inputs = case.inputs(problem)
    with autotuning.forcing() as seen:
        first = results(case, problem, inputs)
    if not seen.met:
        return
    judge = _judge(case, problem, inputs)
    for tuned in seen.met:
        told.kernels[tuned] = None
        for index in range(len(tuned.configurations)):
            _forced(case, problem, inputs, (tuned, index), first, judge, told)


def _forced(
    case: FusedCase,
    problem: Problem,
    inputs: tuple[Tensor, ...],
    place: tuple[Tuned, int],
    first: Results,
    judge: Judge,
    told: _Told,
) -> None:
    """Run one case in one configuration, judge it, and compare it with the first."""
    try:
        with autotuning.forcing(*place) as seen:
            found = results(case, problem, inputs)
    except KernelFailure as error:
        if autotuning.is_unusable(error.__cause__):
            told.unusable[place] = str(error)
            return
        faults = [str(error)]
    else:
        if not seen.ran:
            return
        faults = judge(found)
        for name, part in found.items():
            differs = difference(first[name], part, case.subject.fmt)
            if differs:
                told.other_bits.setdefault(place, f"{name} of {problem} in {differs}")
    told.ran.add(place)
    if faults and place not in told.failed:
        message = f"{_name(place)}: {faults[0]}"
        told.failed[place] = case.finding("configurations", FindingStatus.FAILED, message, problem)


def _judge(case: FusedCase, problem: Problem, inputs: tuple[Tensor, ...]) -> Judge:
    """Return what compares results of a case with their exact values, worked out once."""
    operator, formula = case.operator, case.job.formula
    value = operator.forward(inputs, formula, case.arithmetic)
    dy = cotangent(case, problem, value.value)
    parts = operator.backward(dy, inputs, formula, case.arithmetic)
    exact = {f"d{name}": part for name, part in zip(operator.arguments, parts, strict=True)}
    exact["the result"] = value

    def judge(found: Results) -> list[str]:
        return [
            f"{name}: {message}"
            for name, part in found.items()
            for message in judged(
                part,
                exact[name],
                case.subject.fmt,
                case.contract,
                str(problem),
                kinds=name == "the result",
            ).faults.values()
        ]

    return judge


def _name(place: tuple[Tuned, int]) -> str:
    tuned, index = place
    return f"{tuned.kernel} in {tuned.configurations[index]}"


def _findings(case: FusedCase, told: _Told) -> list[Finding]:
    if not told.kernels:
        return [case.finding("configurations", FindingStatus.SKIPPED, _ABSENT)]
    findings = list(told.failed.values())
    if not told.failed:
        names = ", ".join(dict.fromkeys(tuned.kernel for tuned in told.kernels))
        same = "" if told.other_bits else ", bit for bit the same"
        message = f"all {len(told.ran)} configurations of {names} within their bounds{same}"
        findings.append(case.finding("configurations", FindingStatus.PASSED, message))
    notes = [f"{_name(place)} gives other bits: {said}" for place, said in told.other_bits.items()]
    notes += [f"{_name(place)} cannot run here: {said}" for place, said in told.unusable.items()]
    return findings + [
        case.finding("configurations", FindingStatus.NOTED, message) for message in notes
    ]
