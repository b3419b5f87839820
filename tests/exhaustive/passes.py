"""Kernels and ranges of patterns, and two ways to measure them: the pass, and the general path."""

from __future__ import annotations

import json
from itertools import pairwise

import torch
from torch.nn import functional

from gelu_verify import contracts, operators
from gelu_verify.contracts import BUILT_IN
from gelu_verify.elements import Elements
from gelu_verify.exhaustive import transport
from gelu_verify.exhaustive.census import Census
from gelu_verify.exhaustive.engines import TorchEngine
from gelu_verify.exhaustive.limits import limits_of
from gelu_verify.exhaustive.measuring import Pass
from gelu_verify.exhaustive.settling import EnginePass
from gelu_verify.exhaustive.spans import FP32, spans
from gelu_verify.formats import tensors
from gelu_verify.judge import Tally, judge
from gelu_verify.kernels.subject import through_autograd
from gelu_verify.measure.error import Errors, measure
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


def flushes(x):
    """Subnormal results are flushed to zero, and zeros are positive."""
    y = functional.gelu(x)
    return torch.where(y.abs() < 2.0**-126, 0.0, y)


def nan_far_out(x):
    """NaN for one of four far left, +0 else."""
    far = torch.where(x.view(torch.int32) % 4 == 1, torch.nan, 0.0)
    return torch.where(x < -15.0, far, functional.gelu(x))


def rounded_argument(x):
    """Off by 0 to 7/4 of what rounding erfc's argument explains, both ways."""
    wide = x.double()
    size = (x.view(torch.int32) % 8).double() / 4 * (wide * wide + 1) * 2.0**-23
    sign = 1.0 - 2.0 * (x.view(torch.int32) // 8 % 2).double()
    return (0.5 * wide * torch.special.erfc(-wide * 2**-0.5) * (1 + sign * size)).float()


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


def torch_engine(measuring: Pass):
    return TorchEngine(measuring.formula, measuring.operator.derivative)


def gpu_engine(measuring: Pass):
    """The GPU's engine, on the CPU: in Triton's interpreter."""
    from gelu_verify.exhaustive.gpu_engine import GpuEngine

    formula, derivative = measuring.formula, measuring.operator.derivative
    return GpuEngine(formula, derivative, limits_of(measuring), torch.device("cpu"))


def census(
    kernel, formula, derivative, parts, contract="cancelling", engine=torch_engine
) -> Census:
    """Measure ranges of patterns, none across the sign, each part in a call of its own."""
    found = Census()
    measuring = Pass(operator_of(derivative), formula, contracts.get(contract), found)
    by_engine = EnginePass(measuring, engine(measuring))
    for start, stop in parts:
        lead = 1 if start % SIGN else 0
        by_engine.add(start, actual_of(kernel, derivative, start - lead, stop), lead)
    by_engine.finish()
    return found


def cpu_engine(measuring: Pass):
    from gelu_verify.exhaustive.cpu_engine import CpuEngine

    return CpuEngine(measuring.formula, measuring.operator.derivative, limits_of(measuring))


def different(kernel, formula, derivative, parts, engine, contract="cancelling") -> list:
    """What an engine's census says otherwise than torch's: path, the two values."""
    found = []
    by_torch, by_engine = (
        _leaves(
            json.loads(transport.dumps(census(kernel, formula, derivative, parts, contract, e)))
        )
        for e in (torch_engine, engine)
    )
    for path in sorted(by_torch.keys() | by_engine.keys()):
        expected, got = by_torch.get(path), by_engine.get(path)
        if path.startswith("/spreads/"):
            if not _close_spreads(expected, got):
                found.append((path, expected, got))
        elif path.endswith(("signed_sum", "small_square_sum")):
            # The exact values are evaluated with other roundings, far below the unit of the sums:
            # once in about 10^7 elements one rounds to the next unit.
            if not abs(got - expected) <= max(8, 1e-12 * abs(expected)):
                found.append((path, expected, got))
        elif got != expected:
            found.append((path, expected, got))
    return found


def _close_spreads(expected, got):
    """Tell whether counts are equal, and the sum and both extremes to a unit or so."""
    if expected is None or got is None or expected[0] != got[0]:
        return False
    pairs = zip(expected[1:], got[1:], strict=True)
    return all(abs(a - b) <= max(8, 1e-12 * abs(a)) for a, b in pairs)


def _leaves(value, path=""):
    """Paths to leaves of nested JSON objects."""
    if not isinstance(value, dict):
        return {path: value}
    return {k: v for key, part in value.items() for k, v in _leaves(part, f"{path}/{key}").items()}


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


def measured(kernel, formula, derivative, parts) -> tuple[torch.Tensor, Errors]:
    """Return x (N,), float64, and the errors of ranges of patterns, as a sweep measures them."""
    operator, found = operator_of(derivative), []
    for start, stop in parts:
        x = bits(start, stop).view(torch.float32)
        inputs = (torch.ones_like(x), x) if derivative else (x,)
        lead = 1 if start % SIGN else 0
        actual = actual_of(kernel, derivative, start - lead, stop)[lead:]
        found.append((x, inputs, actual))
    xs = torch.cat([x for x, _, _ in found])
    joined = tuple(torch.cat(parts) for parts in zip(*(i for _, i, _ in found), strict=True))
    exact = operator.exact(joined, formula, FP32)
    return xs.double(), measure(torch.cat([a for _, _, a in found]), exact, FP32)
