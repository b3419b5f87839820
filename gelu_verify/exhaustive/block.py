"""A block of consecutive patterns within one span, with its exact values and errors."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import torch

from gelu_verify.elements import Elements
from gelu_verify.exhaustive import exact as block_exact
from gelu_verify.exhaustive.spans import EPSILON, FP32, Span, Zone
from gelu_verify.measure.error import measure
from gelu_verify.measure.regions import REGIONS
from gelu_verify.measure.summary import Batch, Sample
from gelu_verify.operators import Operator
from gelu_verify.reference.exact import FastExact

_ONE = 0x3F80_0000
_MINUS_ZERO = 1 << 31
_UNSIGNED = 0xFFFF_FFFF
_MAGNITUDE = 0x7FFF_FFFF_FFFF_FFFF
_EXPONENT = 0x7FF0_0000_0000_0000


@dataclass(frozen=True)
class Results:
    """Consecutive patterns and what the kernel gave for them, on one device.

    bits: int32 patterns of x (N,); actual: float32 (N,), with dy = 1 for a backward.
    before: the result for the pattern before the first; None where that has the other sign.
    """

    bits: torch.Tensor
    actual: torch.Tensor
    before: float | None

    def part(self, start: int, stop: int) -> Results:
        """Return the results ``start`` to ``stop - 1``."""
        before = float(self.actual[start - 1]) if start else self.before
        return Results(self.bits[start:stop], self.actual[start:stop], before)

    def on_cpu(self) -> Results:
        """Return the results on the CPU, where a few elements are measured faster."""
        return Results(self.bits.cpu(), self.actual.cpu(), self.before)


@dataclass(frozen=True)
class Block:
    """Results of one span with all that is measured on them, tensors (N,) of one device.

    high: the exact values, float64. error: signed, in ULP, float64; not meaningful where the result
    is not finite. per_ulp: ``1/ulp(y)``, float64.
    """

    operator: Operator
    formula: str
    span: Span
    results: Results
    high: torch.Tensor
    bound: float
    per_ulp: torch.Tensor
    error: torch.Tensor

    @classmethod
    def of(cls, operator: Operator, formula: str, span: Span, results: Results) -> Block:
        """Measure the results of a span."""
        x = results.bits.view(torch.float32).double()
        high, bound = block_exact.of_block(span, x, formula, operator.derivative)
        per_ulp = _per_ulp(high, _is_inward(span, operator.derivative))
        error = torch.sub(results.actual, high).mul_(per_ulp)
        return cls(operator, formula, span, results, high, bound, per_ulp, error)

    def __len__(self) -> int:
        return self.results.bits.numel()

    @property
    def bits(self) -> torch.Tensor:
        """The patterns of x, int32."""
        return self.results.bits

    @property
    def actual(self) -> torch.Tensor:
        """The kernel's results, float32."""
        return self.results.actual

    def last_unsaturated(self) -> int | None:
        """Return the last index whose result is not 0 (x < 0), not x or dy = 1 (x > 0)."""
        for start in (max(0, len(self) - 64), 0):  # mostly one of the last
            got, bits = self.actual[start:], self.bits[start:]
            if self.span.negative:
                differs = got != 0.0
            else:
                differs = got != (1.0 if self.operator.derivative else bits.view(torch.float32))
            found = differs.nonzero()
            if found.numel():
                return start + int(found[-1])
        return None

    @cached_property
    def odd(self) -> torch.Tensor:
        """Indices of elements that can have a class: zero, wrong sign, or not finite; a number for
        a NaN; all that is given for an infinity.
        """
        if self.span.zone is Zone.NAN:
            return (~torch.isnan(self.actual)).nonzero().flatten()
        if self.span.zone is Zone.INFINITE:
            return torch.arange(len(self), device=self.bits.device)
        if self._has_sign_of_x():
            return self.bits.new_empty(0, dtype=torch.long)
        product = self.actual.double() * self.high
        ordinary = (product > 0.0) & (product < torch.inf)
        return (~ordinary).nonzero().flatten()

    def _has_sign_of_x(self) -> bool:
        """Tell whether every result is finite, not zero, and has the sign that GELU has there."""
        if self.operator.derivative:
            return False
        low, high = torch.aminmax(self.actual)  # NaN in any element gives NaN
        if self.span.negative:
            return bool(low > -torch.inf) and bool(high < 0.0)
        return bool(low > 0.0) and bool(high < torch.inf)

    @cached_property
    def size(self) -> torch.Tensor:
        """``|error|`` in ULP; 0 where the result is not finite, which the class says."""
        if self.odd.numel() == 0:
            return self.error.abs()
        return torch.where(torch.isfinite(self.actual), self.error.abs(), 0.0)

    def usable(self) -> torch.Tensor:
        """Return the errors of the elements whose result is finite."""
        if self.odd.numel() == 0:
            return self.error
        finite = torch.isfinite(self.actual)
        return self.error if bool(finite.all()) else self.error[finite]

    @cached_property
    def largest(self) -> float:
        """The largest error in ULP among the finite results."""
        return float(self.size.max())

    def beyond(self, limit: float) -> torch.Tensor:
        """Return which elements' error exceeds ``limit`` ULP, bool (N,)."""
        return self.size > limit

    def certainly_beyond(self, limit: float, open_width: float) -> torch.Tensor:
        """Return which elements' error exceeds ``limit`` beyond any doubt, bool (N,).

        Where the rounding is known, what does not have it is beyond 1/2.
        """
        if self.rounding_is_known(limit):
            due = self.actual.view(torch.int32) == self._nearest_half()
            return torch.isfinite(self.actual) & ~due
        return self.beyond(limit + open_width)

    def rounding_is_known(self, limit: float) -> bool:
        """Tell whether the block is one of GELU at |x| < 2^-125 and the limit that of rounding.

        Half of all errors are exactly 1/2 ULP in float64 there: x/2 lies between two subnormals.
        """
        last = (self.span.stop - 1) & 0x7FFF_FFFF
        return limit == 0.5 and self.operator.derivative == 0 and last < 2 << 23

    def _nearest_half(self) -> torch.Tensor:
        """Return RN(x/2 + x²·f''(0)/2 + ...) as int32 patterns, for |x| < 2^-125.

        Patterns below 2^24 are multiples of the smallest subnormal, so half of one is a shift; a
        tie is decided upwards, because x²·f''(0)/2 > 0: away from 0 for x > 0, towards it else.
        """
        magnitude = self.bits & 0x7FFF_FFFF
        if self.span.negative:
            return (magnitude >> 1) | -(1 << 31)
        return (magnitude + 1) >> 1

    def out_of_order(self, falling: bool, across_minimum: bool) -> torch.Tensor:
        """Return the indices of results out of order with the one before them.

        falling: whether GELU falls from pattern to pattern here. across_minimum: the first element
        has no order with the one before.
        """
        got = self.actual
        back = got[1:] > got[:-1] if falling else got[1:] < got[:-1]
        found = back.nonzero().flatten() + 1 if bool(back.any()) else back.new_empty(0).long()
        before = None if across_minimum else self.results.before
        if before is not None and (got[0] > before if falling else got[0] < before):
            found = torch.cat([found.new_zeros(1), found])
        finite = torch.isfinite(self.step(found))
        return found[finite]

    def step(self, members: torch.Tensor) -> torch.Tensor:
        """Return the results of some elements less those before them, float64."""
        got = self.actual.double()
        previous = got[(members - 1).clamp(min=0)]
        if members.numel() and int(members[0]) == 0 and self.results.before is not None:
            previous[0] = self.results.before
        return got[members] - previous

    def worst(self, members: torch.Tensor | None = None) -> Sample:
        """Return the element with the largest error, of all or of some, the first of equals."""
        if members is None:
            return self.sample(int((self.size == self.largest).nonzero()[0]))
        size = self.size[members]
        return self.sample(int(members[int((size == size.max()).nonzero()[0])]))

    def sample(self, index: int, error: float | None = None) -> Sample:
        """Return one element, with another error figure than its own if one is given."""
        error = float(self.error[index]) if error is None else error
        return self.sample_of(self.operator, self.results, index, _settled(error))

    @staticmethod
    def sample_of(operator: Operator, results: Results, index: int, error: float) -> Sample:
        """Return element ``index`` of results."""
        pattern = int(results.bits[index]) & _UNSIGNED
        got = int(results.actual[index : index + 1].view(torch.int32)) & _UNSIGNED
        inputs = (_ONE, pattern) if operator.derivative else (pattern,)
        return Sample(inputs, got, error)

    def elements(self, members: torch.Tensor) -> Elements:
        """Return some elements as the judge takes them."""
        x = self.bits[members].view(torch.float32)
        actual, high = self.actual[members], self.high[members]
        inward = torch.full_like(
            x, _is_inward(self.span, self.operator.derivative), dtype=torch.bool
        )
        errors = measure(actual, FastExact(high, inward, self.bound), FP32)
        errors.ulp[errors.ulp.abs() < EPSILON] = 0.0
        inputs = (torch.ones_like(x), x) if self.operator.derivative else (x,)
        return Elements(self.operator, self.formula, FP32, inputs, actual, errors)

    def batch(self, members: torch.Tensor, elements: Elements) -> Batch:
        """Return some elements as a summary takes them."""
        patterns = self.bits[members].long() & _UNSIGNED
        got = elements.actual.view(torch.int32).long() & _UNSIGNED
        code = -1 if self.span.region is None else REGIONS.index(self.span.region)
        regions = torch.full_like(patterns, code)
        ones = torch.full_like(patterns, _ONE)
        inputs = (ones, patterns) if self.operator.derivative else (patterns,)
        return Batch(inputs, got, regions, elements.errors)


def _is_inward(span: Span, derivative: int) -> bool:
    """Return ``fast.inward`` of a span, the same for all of it: spans are cut at 1 and -0."""
    if span.negative:
        return span.start != _MINUS_ZERO
    return derivative == 0 and span.start > _ONE


def _per_ulp(high: torch.Tensor, inward: bool) -> torch.Tensor:
    """Return ``2^(23 - max(floor(log2|y|), -126))``, float64, of exact values (N,).

    The exponent field of y, less one where y is a power of two that the exact value does not reach,
    taken from that of 2^(23 + 2·1023) gives the field of the reciprocal: integers only.
    """
    magnitude = high.view(torch.int64) & _MAGNITUDE
    if inward:
        magnitude.sub_(1)
    # The clamp is at the pattern of 2^-126, and serves y = 0 as well.
    field = magnitude.clamp_(min=897 << 52).bitwise_and_(_EXPONENT)
    return field.neg_().add_((2 * 1023 + 23) << 52).view(torch.float64)


def _settled(error: float) -> float:
    """Return an error, 0 for one below half the unit of the sums, as flat spans count theirs."""
    return 0.0 if abs(error) < EPSILON else error
