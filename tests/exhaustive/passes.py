"""Kernels and ranges of patterns, and two ways to measure them: the pass, and the general path."""

from __future__ import annotations

from itertools import pairwise

import torch
from torch.nn import functional

from gelu_verify import contracts, operators
from gelu_verify.contracts import BUILT_IN
from gelu_verify.exhaustive.block import Results
from gelu_verify.exhaustive.census import Census
from gelu_verify.exhaustive.measuring import Pass
from gelu_verify.exhaustive.spans import FP32, spans
from gelu_verify.formats import tensors
from gelu_verify.judge import Elements, Tally, judge
from gelu_verify.kernels.subject import through_autograd
from gelu_verify.measure.error import measure
from gelu_verify.measure.regions import Regions
from gelu_verify.measure.summary import Batch, Summary

SIGN = 1 << 31
FUNCTIONS = [(f, d) for f in ("erf", "tanh", "sigmoid") for d in (0, 1)]

SOUND = {
    "erf": functional.gelu,
    "tanh": lambda x: functional.gelu(x, approximate="tanh"),
    "sigmoid": lambda x: x * torch.sigmoid(1.702 * x),
}


def positive_zero_in_the_tail(x):
    return torch.where(x < -5.0, 0.0, functional.gelu(x))


def always_nan(x):
    return x * torch.nan


def one_bad_element(x):
    return torch.where(x == -1.0, 0.16, functional.gelu(x))


def overflows(x):
    return torch.where(x.abs() > 3.0, x * torch.inf, functional.gelu(x))


def numbers_for_nan(x):
    return functional.gelu(x).nan_to_num(nan=1.0)


def steps_back(x):
    """One of 16 neighbours is 40 ULP too large."""
    y = functional.gelu(x)
    return torch.where(x.view(torch.int32) % 16 == 3, y * (1 + 40 * 2.0**-23), y)


FAULTY = [
    *(positive_zero_in_the_tail, always_nan, one_bad_element),
    *(overflows, numbers_for_nan, steps_back),
]


def borders(formula: str, derivative: int) -> list[int]:
    """The first patterns of spans that differ from the one before in more than the binade."""
    table = spans(formula, derivative)
    return [
        span.start
        for last, span in pairwise(table)
        if (last.zone, last.region, last.negative) != (span.zone, span.region, span.negative)
    ]


def operator_of(derivative: int):
    return operators.get("gelu_backward" if derivative else "gelu")


def bits(start: int, stop: int) -> torch.Tensor:
    low = start - (1 << 32) if start >= SIGN else start
    return torch.arange(low, low + stop - start, dtype=torch.int32)


def actual_of(kernel, derivative: int, start: int, stop: int) -> torch.Tensor:
    x = bits(start, stop).view(torch.float32)
    return through_autograd(kernel)(torch.ones_like(x), x) if derivative else kernel(x)


def census(kernel, formula, derivative, parts, contract="cancelling", cls=Pass) -> Census:
    """Measure ranges of patterns, none across the sign, each part by itself, by a pass."""
    found = Census()
    measuring = cls(operator_of(derivative), formula, contracts.get(contract), found)
    for start, stop in parts:
        lead = 1 if start % SIGN else 0
        actual = actual_of(kernel, derivative, start - lead, stop)
        if cls is Pass:
            before = float(actual[0]) if lead else None
            measuring.add(start, Results(bits(start, stop), actual[lead:], before))
        else:
            measuring.add_leading(start, actual, lead)
    return found


def general(kernel, formula, derivative, parts) -> tuple[Summary, dict[str, Tally]]:
    """Measure ranges of patterns as a sweep in memory is, every element judged."""
    operator = operator_of(derivative)
    summary, tallies = Summary(), {c.name: Tally(c) for c in BUILT_IN}
    for start, stop in parts:
        x = bits(start, stop).view(torch.float32)
        inputs = (torch.ones_like(x), x) if derivative else (x,)
        # The same call as for a pass: some kernels give other results in other lanes.
        lead = 1 if start % SIGN else 0
        actual = actual_of(kernel, derivative, start - lead, stop)[lead:]
        errors = measure(actual, operator.exact(inputs, formula, FP32), FP32)
        elements = Elements(operator, formula, FP32, inputs, actual, errors)
        codes = Regions.of(formula, FP32, derivative).codes(x.double())
        regions = torch.where(torch.isfinite(x), codes, -1)
        patterns = tuple(tensors.to_bits(part, FP32) for part in inputs)
        batch = Batch(patterns, tensors.to_bits(actual, FP32), regions, errors)
        summary.add(batch)
        for contract in BUILT_IN:
            tallies[contract.name].add(judge(contract, elements), batch)
    return summary, tallies
