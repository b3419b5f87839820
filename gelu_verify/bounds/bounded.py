"""Exact values that carry how far a kernel's own may be from them, term by term.

A :class:`Bounded` holds float64 values ``v``, a bound ``own`` on their own error, and for every
named source of error a ``slack``: a kernel that computes as its arithmetic says has an intermediate
result within ``Σ slack`` of the exact value. Each operation carries the slack of its operands
through (with the largest slope over the interval they span, so that nothing is left to second
order) and adds what it rounds itself.

A slack that is not finite promises nothing: an infinity or NaN went in, or an intermediate result
may overflow. Such elements are *open*: judged as special values, and no evidence of accuracy. Where
finite inputs overflow float64 itself, the value is not known: it is 0, and open.
"""

from __future__ import annotations

import math
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
#: What a float64 product that underflows loses, at most.
_OWN_LEAST = 2.0**-1074
#: More than the float64 rounding of a slack, which sums up to 2^20 terms of one sign.
_WIDER = 1.0 + 2.0**-30

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
        return total * _WIDER

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
    return rounded(Bounded(value, own, slack), arithmetic)


def multiply(a: Bounded, b: Bounded, arithmetic: Arithmetic) -> Bounded:
    """Return ``a·b``, rounded once in the arithmetic."""
    value = a.value * b.value
    own = a.own * (b.value.abs() + b.own) + a.value.abs() * b.own + _OWN * value.abs() + _OWN_LEAST
    # (a + α)(b + β) - ab = α(b + β) + aβ
    far = b.value.abs() + b.total
    slack = {name: _broadcast(part * far, value) for name, part in a.slack.items()}
    for name, part in b.slack.items():
        more = _broadcast(a.value.abs() * part, value)
        slack[name] = slack[name] + more if name in slack else more
    return rounded(_settled(a, b, Bounded(value, own, slack)), arithmetic)


def matmul(
    a: Bounded, b: Bounded, arithmetic: Arithmetic, start: Bounded | None = None, more: int = 0
) -> Bounded:
    """Return ``a @ b + start``, (..., M, K) by (..., K, N), products and sums in the arithmetic.

    start: what the sum may begin or end with (a bias, without slack): one term more. more: further
    roundings that a term may pass through (an accumulator that is scaled again).
    Error: ``c·u·(|a||b| + |start|)`` of the sum, ``2·u_in·|a||b|`` where inputs are rounded, what
    products lose to underflow, and the slack of the operands.
    """
    k = a.value.shape[-1]
    left, right = a.value.abs(), b.value.abs()
    size = left @ right
    value, terms = a.value @ b.value, k + more
    if start is not None:
        value, size, terms = value + start.value, size + start.value.abs(), terms + 1
    own = a.own @ (right + b.own) + left @ b.own + (k + 1) * (_OWN_SUM * size + _OWN_LEAST)
    far_right = right + b.total
    slack = {name: part @ far_right for name, part in a.slack.items()}
    for name, part in b.slack.items():
        spread = left @ part
        slack[name] = slack[name] + spread if name in slack else spread
    far = size + a.total @ far_right + left @ b.total
    repeated = _repeated(a.value, -1) & _repeated(b.value, -2)
    result = _summed(Bounded(value, own, slack), far, terms, repeated, arithmetic, products=True)
    if arithmetic.input_unit:
        rounding = (1 + arithmetic.input_unit) ** 2 - 1
        result = result.widened(INPUT_ROUNDING, rounding * far)
    special = (~torch.isfinite(left)).any(-1, keepdim=True)
    special = special | (~torch.isfinite(right)).any(-2, keepdim=True)
    if start is not None:
        special = special | ~torch.isfinite(start.value)
    return _known(result, special)


def total(a: Bounded, dim: int, arithmetic: Arithmetic, keepdim: bool = True) -> Bounded:
    """Return the sum over a dimension."""
    n = a.value.shape[dim]

    def summed(part: Tensor) -> Tensor:
        return part.sum(dim, keepdim=keepdim)

    result = a.map(summed)
    size = summed(a.value.abs())
    own = result.own + n * _OWN_SUM * size
    far = size + result.total
    repeated = _repeated(a.value, dim, keepdim)
    return _summed(Bounded(result.value, own, result.slack), far, n - 1, repeated, arithmetic)


def scaled(a: Bounded, factor: float, arithmetic: Arithmetic) -> Bounded:
    """Return ``a·factor``, the factor and the product rounded in the arithmetic."""
    value = a.value * factor
    # The factor itself may be two roundings off: the quotient of a root.
    own = a.own * abs(factor) + 4 * _OWN * value.abs() + _OWN_LEAST
    slack = {name: part * abs(factor) for name, part in a.slack.items()}
    return rounded(Bounded(value, own, slack), arithmetic, roundings=2)


def activate(a: Bounded, formula: str, arithmetic: Arithmetic, order: int = 0) -> Bounded:
    """Return ``f(a)`` (order 0) or ``f'(a)`` (order 1), evaluated as well as the contract says.

    ``|f(s + δ) - f(s)| <= δ·max|f'|`` over [s - δ, s + δ], and likewise with f''. The epilogue is
    the contract's limit in ULP of the arithmetic, and its allowances. The derivative at infinities
    is left open: what a contract promises ends at finite arguments.
    """
    value, own = activation.value(a.value, formula, order)
    wide = a.total + a.own
    slope = activation.steepest(a.value - wide, a.value + wide, formula, order + 1)
    slack = {name: part * slope for name, part in a.slack.items()}
    result = Bounded(value, own + a.own * slope, slack)
    evaluated = epilogue.slack(a, result, formula, arithmetic, order)
    if order:
        evaluated = torch.where(torch.isfinite(a.value), evaluated, torch.inf)
    return result.widened(EPILOGUE, evaluated)


def cast(a: Bounded, name: str, arithmetic: Arithmetic, relative: bool = False) -> Bounded:
    """Return ``a`` with the rounding of a named intermediate to the format, where it is allowed.

    relative: whether a kernel may hold it multiplied by a number >= 1, in another binade.
    Where the intermediate may overflow the format nothing is promised: the slack is infinite.
    """
    if not arithmetic.may_cast(name):
        return a
    fmt, reach = arithmetic.fmt, a.reach
    rounding = half_ulp(reach, fmt)
    if relative:
        rounding = fmt.unit_roundoff * reach + fmt.smallest_subnormal
    return a.widened(CAST, torch.where(reach <= fmt.largest, rounding, torch.inf))


def output(a: Bounded, arithmetic: Arithmetic) -> Bounded:
    """Return ``a`` with the rounding of the result to the format."""
    return a.widened(OUTPUT, half_ulp(a.reach, arithmetic.fmt))


def half_ulp(size: Tensor, fmt: Format) -> Tensor:
    """Return half the ULP of a format at magnitudes, float64; fp64's below 2^-1021 is 2^-1074."""
    finite = torch.where(torch.isfinite(size), size, 0.0)
    binade = tensors.power_of_two(tensors.binade(finite, fmt))
    return (binade * 2.0**-fmt.precision).clamp(min=_OWN_LEAST)


def rounded(a: Bounded, arithmetic: Arithmetic, roundings: int = 1) -> Bounded:
    """Return ``a`` with roundings of elementwise work, relative to itself, and underflow."""
    # (1 + u)^n - 1, which float64 would call 0 for its own u.
    unit = math.expm1(roundings * math.log1p(arithmetic.unit))
    slack = unit * a.reach + arithmetic.own.smallest_subnormal
    return a.widened(ARITHMETIC, _unless_overflow(slack, a.reach, arithmetic))


def _summed(
    a: Bounded,
    far: Tensor,
    roundings: int,
    repeated: Tensor,
    arithmetic: Arithmetic,
    products: bool = False,
) -> Bounded:
    """Return a sum with the errors of its roundings.

    far: the sum of what its terms may be. repeated: whether all terms are one number, the sums of
    which round the same way again and again: no probability there.
    """
    likely = arithmetic.growth_of(roundings, a.value.numel(), products)
    slack = torch.where(repeated, arithmetic.worst_of(roundings, products) * far, likely * far)
    if products:
        slack = slack + roundings * arithmetic.own.smallest_subnormal
    return a.widened(ACCUMULATION, _unless_overflow(slack, far, arithmetic))


def _repeated(part: Tensor, dim: int, keepdim: bool = True) -> Tensor:
    """Tell where all elements along a dimension are one number; False where there are none."""
    if part.shape[dim] == 0:
        return part.sum(dim, keepdim=keepdim) != 0
    return part.amax(dim, keepdim=keepdim) == part.amin(dim, keepdim=keepdim)


def _unless_overflow(slack: Tensor, reach: Tensor, arithmetic: Arithmetic) -> Tensor:
    """Return the slack, infinite where an intermediate result of that reach may overflow."""
    return torch.where(reach <= arithmetic.own.largest, slack, torch.inf)


def _settled(a: Bounded, b: Bounded, product: Bounded) -> Bounded:
    """Return a product, with 0 (and open) where it is 0·inf and the 0 is not exact.

    A kernel that has a small number there has an infinity, and another NaN.
    """
    undefined = torch.isnan(product.value) & ~torch.isnan(a.value) & ~torch.isnan(b.value)
    if not undefined.any():
        return product
    unsure = torch.where(a.value == 0, a.total + a.own, b.total + b.own) > 0
    value = torch.where(undefined & unsure, 0.0, product.value)
    return Bounded(value, product.own, product.slack)


def _known(a: Bounded, special: Tensor) -> Bounded:
    """Return a product, with 0 (and open) where float64 overflowed and no input was special."""
    lost = ~torch.isfinite(a.value) & ~special
    return Bounded(torch.where(lost, 0.0, a.value), a.own, a.slack)


def _of(a: Bounded, name: str) -> Tensor:
    return a.slack[name] if name in a.slack else torch.zeros_like(a.value)


def _broadcast(part: Tensor, like: Tensor) -> Tensor:
    return part.expand_as(like) if part.shape != like.shape else part
