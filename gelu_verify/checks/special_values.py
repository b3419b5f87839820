"""Special values: NaN, infinities, zeros, subnormals and the largest numbers, in every lane.

Every special value is put at every position of inputs of many lengths, because vector code treats
its remainder apart, and on several memory layouts, because those take other routes. Of an
operator with two arguments the other one is neutral here.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field

import torch

from gelu_verify import describe
from gelu_verify.checks.case import Case, Outcome
from gelu_verify.contracts import MinusInfinity, ZeroSign
from gelu_verify.formats import tensors
from gelu_verify.inputs import layouts
from gelu_verify.inputs.special import special_bits
from gelu_verify.job import reproduce
from gelu_verify.kernels.subject import KernelFailure, require_like
from gelu_verify.operators import NEUTRAL, at_neutral, place
from gelu_verify.records import FindingStatus, SpecialValue

#: Below, at and above the vector widths of SSE to AVX-512 and a warp.
LENGTHS = (1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 32, 33, 64, 65)
SIMULATED_LENGTHS = (1, 7, 33)
_LAYOUTS = ("strided", "transposed", "sliced", "offset", "expanded", "0-d")


@dataclass
class _Seen:
    """Distinct results for one special input, each with the first place that gave it."""

    results: dict[int, str] = field(default_factory=dict)


def run(case: Case) -> Outcome:
    """Collect what every special value gives everywhere, then judge each distinct result once."""
    swept = place(case.subject.operator.arguments)
    patterns = [p[swept] for p in case.job.replay] or special_bits(case.subject.fmt)
    seen = [_Seen() for _ in patterns]
    for where, order, results in _calls(case, patterns):
        for index, pattern in zip(order, results, strict=True):
            seen[index].results.setdefault(pattern, where)
    outcome = Outcome()
    rows = []
    for pattern, found in zip(patterns, seen, strict=True):
        rows.append(_judge_one(case, pattern, found, outcome))
    if not any(f.status is FindingStatus.FAILED for f in outcome.findings):
        message = (
            f"{len(patterns)} special inputs right at {len(_lengths(case))} lengths, every lane"
        )
        outcome.findings.append(case.finding("special_values", FindingStatus.PASSED, message))
    outcome.fields["special_values"] = tuple(rows)
    return outcome


def _calls(case: Case, patterns: list[int]) -> Iterator[tuple[str, list[int], list[int]]]:
    """Yield ``(where, indices of the specials, result patterns)`` for every call made."""
    fmt = case.subject.fmt
    values = tensors.from_patterns(patterns, fmt).to(case.subject.device)
    count = len(patterns)
    for length in _lengths(case):
        for shift in range(count):
            order = [(lane + shift) % count for lane in range(length)]
            yield f"contiguous, length {length}", order, _call(case, values[order])
    by_name = {route.name: route for route in layouts.ROUTES}
    order = [lane % count for lane in range(2 * count + 8 - (2 * count) % 8)]
    for name in _LAYOUTS:
        route = by_name[name]
        if route.values_per_call == 1:
            for index in range(count):
                with suppress(KernelFailure):
                    yield name, [index], _call(case, route.layout(values[index : index + 1]))
            continue
        shaped = route.layout(values[order])
        repeats = shaped.numel() // len(order)
        try:
            results = _call(case, shaped)
        except KernelFailure:
            continue  # the routes check reports the layouts a kernel declines or fails on
        yield name, [i for i in order for _ in range(max(1, repeats))][: len(results)], results


def _lengths(case: Case) -> tuple[int, ...]:
    """Return the lengths to try; an interpreter has no vectors, and some 25 ms a call."""
    return SIMULATED_LENGTHS if case.subject.simulated else LENGTHS


def _call(case: Case, x: torch.Tensor) -> list[int]:
    subject = case.subject
    result = subject.apply(*at_neutral(subject.operator.arguments, x))
    require_like(result, x.shape, subject.dtype)
    flat = result.detach().cpu().reshape(-1)
    pattern = tensors.to_bits(flat, subject.fmt)
    # NaNs are alike, whatever their payload.
    nan = torch.isnan(flat.double())
    return torch.where(nan, torch.tensor(subject.fmt.nan_bits), pattern).tolist()


def _judge_one(case: Case, pattern: int, seen: _Seen, outcome: Outcome) -> SpecialValue:
    subject = case.subject
    fmt = subject.fmt
    x = fmt.decode(pattern)
    status = FindingStatus.PASSED
    texts = []
    expected = _expected(case, x)
    for result, where in seen.results.items():
        got = fmt.decode(result & ((1 << fmt.bits) - 1))
        texts.append(describe.value(got, fmt))
        verdict = _verdict(case, x, got, pattern, result)
        if verdict is FindingStatus.PASSED:
            continue
        status = FindingStatus.FAILED if FindingStatus.FAILED in (status, verdict) else verdict
        if verdict is FindingStatus.FAILED:
            name = subject.operator.arguments[place(subject.operator.arguments)]
            message = (
                f"{name} = {describe.value(x, fmt)}: got {texts[-1]}, expected {expected} ({where})"
            )
            shown = f"{name} = {describe.value(x, fmt)} ({describe.bits(pattern, fmt)})"
            found = case.finding("special_values", FindingStatus.FAILED, message)
            line = reproduce(case.job, [_replayed(case, pattern)])
            outcome.findings.append(found.model_copy(update={"input": shown, "reproduce": line}))
    return SpecialValue(
        input=f"{describe.value(x, fmt)} ({describe.bits(pattern, fmt)})",
        expected=expected,
        actual=tuple(texts),
        status=status,
    )


def _replayed(case: Case, pattern: int) -> tuple[str, ...]:
    """Return the patterns of all arguments at a special input, as ``--input`` takes them."""
    fmt = case.subject.fmt
    return tuple(
        describe.bits(fmt.encode(NEUTRAL[name]) if name in NEUTRAL else pattern, fmt)
        for name in case.subject.operator.arguments
    )


def _expected(case: Case, x: float) -> str:
    """Return in words what the contract wants at a special input."""
    derivative, fmt = case.subject.operator.derivative, case.subject.fmt
    if math.isnan(x):
        return "nan"
    if math.isinf(x):
        if derivative:
            limit = "1" if x > 0 else "0"
            return limit if case.contract.derivative_at_infinity else f"{limit} (not judged)"
        if x > 0:
            return "inf"
        policy = case.contract.minus_infinity
        zero = "-0" if case.contract.zero_sign is ZeroSign.STRICT else "0"
        return {"zero": zero, "nan": "nan", "any": f"{zero} or nan"}[policy.value]
    numbers = [NEUTRAL.get(name, x) for name in case.subject.operator.arguments]
    exact = describe.exact_value(numbers, case.subject.operator, case.subject.formula)
    rounded = fmt.decode(fmt.round(exact, negative_zero=math.copysign(1.0, x) < 0))
    return describe.value(rounded, fmt)


def _verdict(case: Case, x: float, got: float, pattern: int, result: int) -> FindingStatus:
    if math.isnan(x):
        return FindingStatus.PASSED if math.isnan(got) else FindingStatus.FAILED
    if math.isinf(x):
        right = _infinite_is_right(case, x, got)
        judged = not case.subject.operator.derivative or case.contract.derivative_at_infinity
        wrong = FindingStatus.FAILED if judged else FindingStatus.NOTED
        return FindingStatus.PASSED if right else wrong
    return FindingStatus.FAILED if _breaks(case, pattern, result) else FindingStatus.PASSED


def _infinite_is_right(case: Case, x: float, got: float) -> bool:
    if case.subject.operator.derivative:
        return got == (1.0 if x > 0 else 0.0)
    if x > 0:
        return got == math.inf
    strict = case.contract.zero_sign is ZeroSign.STRICT
    zero = got == 0.0 and (math.copysign(1.0, got) < 0 or not strict)
    return {
        MinusInfinity.ZERO: zero,
        MinusInfinity.NAN: math.isnan(got),
        MinusInfinity.ANY: zero or math.isnan(got),
    }[case.contract.minus_infinity]


def _breaks(case: Case, pattern: int, result: int) -> bool:
    """Judge one finite special input by the contract, as the sweep is judged."""
    fmt = case.subject.fmt
    x, actual = (tensors.from_patterns([bits], fmt) for bits in (pattern, result))
    inputs = at_neutral(case.subject.operator.arguments, x)
    return bool(case.judged(case.measured(inputs, actual)).broken[0])
