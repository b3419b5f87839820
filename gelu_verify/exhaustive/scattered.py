"""Elements from anywhere among the finite patterns of fp32, measured together."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch

from gelu_verify.elements import Elements
from gelu_verify.exhaustive import exact
from gelu_verify.exhaustive.spans import EPSILON, FP32, turning_pattern
from gelu_verify.measure.error import measure
from gelu_verify.measure.regions import TINY_BELOW, Regions
from gelu_verify.measure.summary import Batch
from gelu_verify.operators import Operator
from gelu_verify.reference import fast
from gelu_verify.reference.exact import FastExact

_ONE = 0x3F80_0000
_UNSIGNED = 0xFFFF_FFFF
_SIGN = 1 << 31


@dataclass(frozen=True)
class Scattered:
    """Results at patterns in any order, tensors (N,) of one device.

    bits: int32 patterns of finite x. actual: float32, with dy = 1 for a backward. before: float32,
    the result for the pattern before each, NaN where there is none or it has no order with it.
    """

    bits: torch.Tensor
    actual: torch.Tensor
    before: torch.Tensor

    def __len__(self) -> int:
        return self.bits.numel()

    def at(self, members: torch.Tensor | slice) -> Scattered:
        """Return some of the elements."""
        return Scattered(self.bits[members], self.actual[members], self.before[members])

    def on_cpu(self) -> Scattered:
        """Return the elements on the CPU, where a few are measured faster."""
        if self.bits.device.type == "cpu":
            return self
        floats = (self.actual.view(torch.int32), self.before.view(torch.int32))
        bits, actual, before = torch.stack([self.bits, *floats]).cpu()  # one copy waits once
        return Scattered(bits, actual.view(torch.float32), before.view(torch.float32))

    def by_reference(self) -> Iterator[tuple[bool, torch.Tensor]]:
        """Yield indices of the elements with |x| < 2^-12 (True), whose exact values are the series,
        and of the others (False), if there are any.
        """
        is_tiny = self.bits.view(torch.float32).abs() < TINY_BELOW
        for tiny in (True, False):
            members = (is_tiny == tiny).nonzero().flatten()
            if members.numel():
                yield tiny, members


def joined(parts: list[Scattered]) -> Scattered:
    """Return the elements of several, at least one, together."""
    return Scattered(
        torch.cat([part.bits for part in parts]),
        torch.cat([part.actual for part in parts]),
        torch.cat([part.before for part in parts]),
    )


def elements(operator: Operator, formula: str, tiny: bool, part: Scattered) -> Elements:
    """Return elements that all have, or all lack, |x| < 2^-12, as the judge takes them."""
    x = part.bits.view(torch.float32)
    derivative = operator.derivative
    if tiny:
        high, bound = exact.tiny(x.double(), formula, derivative, has_zero=True)
    else:
        high, bound = exact.beyond_tiny(x.double(), formula, derivative)
    inward = fast.inward(x, derivative)
    errors = measure(part.actual, FastExact(high, inward, bound), FP32)
    errors.ulp[errors.ulp.abs() < EPSILON] = 0.0
    inputs = (torch.ones_like(x), x) if derivative else (x,)
    return Elements(operator, formula, FP32, inputs, part.actual, errors)


def batch(found: Elements) -> Batch:
    """Return elements as a summary takes them."""
    x = found.inputs[-1]
    patterns = x.view(torch.int32).long() & _UNSIGNED
    got = found.actual.view(torch.int32).long() & _UNSIGNED
    regions = Regions.of(found.formula, FP32, found.operator.derivative).codes(x.double())
    ones = torch.full_like(patterns, _ONE)
    inputs = (ones, patterns) if found.operator.derivative else (patterns,)
    return Batch(inputs, got, regions, found.errors)


def errors(
    operator: Operator, formula: str, patterns: np.ndarray, results: np.ndarray
) -> np.ndarray:
    """Return the signed errors in ULP, float64 (N,), of results at patterns, measured on the CPU.

    patterns: int64; results: int32 patterns of what the kernel gave.
    """
    bits = torch.from_numpy(patterns.astype(np.uint32).view(np.int32))
    actual = torch.from_numpy(results.copy()).view(torch.float32)
    samples = Scattered(bits, actual, torch.full_like(actual, torch.nan))
    found = np.zeros(len(patterns))
    for tiny, members in samples.by_reference():
        error = elements(operator, formula, tiny, samples.at(members)).errors.ulp
        found[members.numpy()] = error.numpy()
    return found


def neighbours(formula: str, bits: torch.Tensor, low: int, actual: torch.Tensor) -> Scattered:
    """Return elements of a call with the results before them.

    bits: their patterns, int32 (N,). actual: the call's results, the first for pattern ``low``.
    """
    patterns = bits.long() & _UNSIGNED
    index = patterns - low
    before = actual[(index - 1).clamp(min=0)]
    ordered = index > 0
    for pattern in (_SIGN, turning_pattern(formula) + 1):
        ordered &= patterns != pattern
    return Scattered(bits, actual[index], torch.where(ordered, before, torch.nan))
