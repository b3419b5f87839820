"""Exact values that carry how far a kernel's own may be from them, term by term.

A :class:`Bounded` holds float64 values ``v``, a bound ``own`` on their own error, and for every
named source of error a ``slack``: a kernel that computes as its arithmetic says has an intermediate
result within ``Σ slack`` of the exact value. Each operation carries the slack of its operands
through (with the largest slope over the interval they span, so that nothing is left to second
order) and adds what it rounds itself.

A slack that is not finite promises nothing: an infinity or NaN went in, or an intermediate result
may overflow. Such elements are *open*: judged as special values, and no evidence of accuracy.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

from gelu_verify.bounds import activation, epilogue
from gelu_verify.bounds.arithmetic import Arithmetic
from gelu_verify.formats import Format, tensors

_OWN = 2.0**-53
#: Sums of float64 in any order: γ_n with room for n up to 2^20.
_OWN_SUM = 1.0001 * 2.0**-53

ACCUMULATION = "accumulation"
INPUT_ROUNDING = "input rounding"
ARITHMETIC = "arithmetic"
CAST = "cast"
EPILOGUE = "epilogue"
OUTPUT = "output"


@dataclass(frozen=True)
class Bounded:
    """Values (any shape, float64), the bound of their own error, and slack by source."""

    value: Tensor
    own: Tensor
    slack: Mapping[str, Tensor]

    @property
    def total(self) -> Tensor:
        """How far a kernel may be from the exact value, in all; float64, shape of ``value``."""
        total = torch.zeros_like(self.value)
        for part in self.slack.values():
            total = total + part
        return total

    @property
    def reach(self) -> Tensor:
        """The largest magnitude a kernel's intermediate result may have."""
        return self.value.abs() + self.own + self.total

    def map(self, change: Callable[[Tensor], Tensor]) -> Bounded:
        """Return the same elements rearranged: a view, a transpose, a selection."""
        slack = {name: change(part) for name, part in self.slack.items()}
        return Bounded(change(self.value), change(self.own), slack)

    def widened(self, name: str, by: Tensor) -> Bounded:
        """Return the same values with more slack of one source."""
        slack = dict(self.slack)
        slack[name] = slack[name] + by if name in slack else by
        return Bounded(self.value, self.own, slack)


def exactly(value: Tensor) -> Bounded:
    """Return inputs: exact, without slack."""
    value = value.double()
    return Bounded(value, torch.zeros_like(value), {})


def add(a: Bounded, b: Bounded, arithmetic: Arithmetic, sign: float = 1.0) -> Bounded:
    """Return ``a + b`` (``a - b`` for sign -1), rounded once in the arithmetic."""
    value = a.value + sign * b.value
    own = _broadcast(a.own + b.own, value) + _OWN * value.abs()
    names = {*a.slack, *b.slack}
    slack = {name: _broadcast(_of(a, name) + _of(b, name), value) for name in names}
    return _rounded(Bounded(value, own, slack), arithmetic)


def multiply(a: Bounded, b: Bounded, arithmetic: Arithmetic) -> Bounded:
    """Return ``a·b``, rounded once in the arithmetic."""
    value = a.value * b.value
    own = a.own * (b.value.abs() + b.own) + a.value.abs() * b.own + _OWN * value.abs()
    # (a + α)(b + β) - ab = α(b + β) + aβ
    far = b.value.abs() + b.total
    slack = {name: _broadcast(part * far, value) for name, part in a.slack.items()}
    for name, part in b.slack.items():
        more = _broadcast(a.value.abs() * part, value)
        slack[name] = slack[name] + more if name in slack else more
    return _rounded(Bounded(value, own, slack), arithmetic)


def matmul(a: Bounded, b: Bounded, arithmetic: Arithmetic) -> Bounded:
    """Return ``a @ b`` (..., M, K) by (..., K, N): products and sums in the arithmetic.

    Error: ``c(K)·u·|a||b|`` of the sum, ``2·u_in·|a||b|`` where inputs are rounded, and the slack
    of the operands.
    """
    value = a.value @ b.value
    k = a.value.shape[-1]
    left, right = a.value.abs(), b.value.abs()
    size = left @ right
    own = a.own @ (right + b.own) + left @ b.own + k * _OWN_SUM * size
    far_right = right + b.total
    slack = {name: part @ far_right for name, part in a.slack.items()}
    for name, part in b.slack.items():
        more = left @ part
        slack[name] = slack[name] + more if name in slack else more
    far = (left + a.total) @ far_right
    unit = arithmetic.growth_of(k, value.numel(), products=True)
    result = Bounded(value, own, slack).widened(ACCUMULATION, unit * far)
    if arithmetic.input_unit:
        rounding = (1 + arithmetic.input_unit) ** 2 - 1
        result = result.widened(INPUT_ROUNDING, rounding * far)
    return result


def total(a: Bounded, dim: int, arithmetic: Arithmetic, keepdim: bool = True) -> Bounded:
    """Return the sum over a dimension."""
    n = a.value.shape[dim]

    def summed(part: Tensor) -> Tensor:
        return part.sum(dim, keepdim=keepdim)

    result = a.map(summed)
    size = summed(a.value.abs())
    own = result.own + n * _OWN_SUM * size
    unit = arithmetic.growth_of(n - 1, result.value.numel())
    far = size + result.total
    return Bounded(result.value, own, result.slack).widened(ACCUMULATION, unit * far)


def scaled(a: Bounded, factor: float, arithmetic: Arithmetic) -> Bounded:
    """Return ``a·factor``, the factor and the product rounded in the arithmetic."""
    value = a.value * factor
    own = a.own * abs(factor) + 2 * _OWN * value.abs()
    slack = {name: part * abs(factor) for name, part in a.slack.items()}
    return _rounded(Bounded(value, own, slack), arithmetic, roundings=2)


def activate(a: Bounded, formula: str, arithmetic: Arithmetic, order: int = 0) -> Bounded:
    """Return ``f(a)`` (order 0) or ``f'(a)`` (order 1), evaluated as well as the contract says.

    ``|f(s + δ) - f(s)| <= δ·max|f'|`` over [s - δ, s + δ], and likewise with f''. The epilogue is
    the contract's limit in ULP of the arithmetic, and its allowances.
    """
    value, own = activation.value(a.value, formula, order)
    wide = a.total + a.own
    slope = activation.steepest(a.value - wide, a.value + wide, formula, order + 1)
    slack = {name: part * slope for name, part in a.slack.items()}
    result = Bounded(value, own + a.own * slope, slack)
    return result.widened(EPILOGUE, epilogue.slack(a, result, formula, arithmetic, order))


def cast(a: Bounded, name: str, arithmetic: Arithmetic) -> Bounded:
    """Return ``a`` with the rounding of a named intermediate to the format, where it is allowed.

    Where the intermediate may overflow the format nothing is promised: the slack is infinite.
    """
    if not arithmetic.may_cast(name):
        return a
    reach = a.reach
    rounding = half_ulp(reach, arithmetic.fmt)
    return a.widened(CAST, torch.where(reach <= arithmetic.fmt.largest, rounding, torch.inf))


def output(a: Bounded, arithmetic: Arithmetic) -> Bounded:
    """Return ``a`` with the rounding of the result to the format."""
    return a.widened(OUTPUT, half_ulp(a.reach, arithmetic.fmt))


def half_ulp(size: Tensor, fmt: Format) -> Tensor:
    """Return half the ULP of a format at magnitudes, float64."""
    finite = torch.where(torch.isfinite(size), size, 0.0)
    if fmt.bits == 64:
        _, exponent = torch.frexp(finite)
        return torch.ldexp(torch.ones_like(finite), (exponent - 54).clamp(min=-1074))
    exponent = tensors.binade(finite, fmt)
    return tensors.power_of_two(exponent - fmt.precision)


def _rounded(a: Bounded, arithmetic: Arithmetic, roundings: int = 1) -> Bounded:
    unit = ((1 + arithmetic.unit) ** roundings - 1) * a.reach + arithmetic.own.smallest_subnormal
    return a.widened(ARITHMETIC, unit)


def _of(a: Bounded, name: str) -> Tensor:
    return a.slack[name] if name in a.slack else torch.zeros_like(a.value)


def _broadcast(part: Tensor, like: Tensor) -> Tensor:
    return part.expand_as(like) if part.shape != like.shape else part
