"""Left tails in float64: Φ(-a) or σ(-v(a)), and the derivative f'(-a), for a = |x| >= 0.

Eager torch operations on one chunk, in place where a temporary can be reused; no branches, and no
cancellation: every sum adds numbers of one sign, or its difference is exact or compensated.
Results that underflow become 0 (-0 for the derivative); a = ∞ must have been clamped before.

The error counts below are in u = 2^-53 and rest on two facts: a has at most 24 significant bits
(so a·a is exact), and torch's exp and expm1 are within 1 ULP = 2u (SLEEF and MKL on the CPU, CUDA's
libdevice: all state 1 ULP or better).
"""

from __future__ import annotations

from functools import cache

import torch
from torch import Tensor

from gelu_verify.reference import coefficients
from gelu_verify.reference.coefficients import LogisticConstants

#: ``(y + ROUND) - ROUND`` rounds 0 <= y < 2^(e+51) to a multiple of 2^e; the key is e.
_ROUND = {exponent: 1.5 * 2.0 ** (52 + exponent) for exponent in (-16, -23)}


def erf_tail(a: Tensor) -> Tensor:
    """Return Φ(-a) = e^(-a²/2)·(1/2 + s·W(t))/(1 + 3a/4), error below 14.5u.

    exp 2 (its argument is exact), 1/2 + s·W 8.5 (see ``_beyond_half``), denominator, quotient and
    product 3, coefficients and truncation 1.
    """
    table = _table("tail", a.device)
    result = _beyond_half(a, table)
    result.div_(torch.mul(a, coefficients.TAIL_GROWTH).add_(1.0))
    # Φ(-a) <= 1/2; the clamp keeps a rounding from crossing the power of two.
    return result.mul_(_gauss(a)).clamp_(max=0.5)


def erf_slope(a: Tensor) -> Tensor:
    """Return GELU'(-a) = e^(-a²/2)·(1 - a/a0)·(1/2 + s·V(t)), error below 15.5u.

    exp 2, 1/2 + s·V 7.5, 1 - a/a0 3.5 (difference, low part, quotient, a0), products 2.
    """
    constants = coefficients.erf_coefficients()
    factor = torch.sub(constants.zero_hi, a).add_(constants.zero_lo).div_(constants.zero_hi)
    result = _beyond_half(a, _table("slope", a.device))
    return result.mul_(factor).mul_(_gauss(a)).clamp_(max=0.5)


def tanh_tail(a: Tensor) -> Tensor:
    """Return σ(-v(a)) of the ``tanh`` formula, error below 6u: see ``_logistic_tail``."""
    return _logistic_tail(_tanh_argument(a))


def sigmoid_tail(a: Tensor) -> Tensor:
    """Return σ(-1.702·a), error below 6u: see ``_logistic_tail``."""
    return _logistic_tail(_sigmoid_argument(a))


def tanh_slope(a: Tensor) -> Tensor:
    """Return f'(-a) of the ``tanh`` formula, error below 17u.

    With h(a) = a·v'(a): h0 - h and v0 - v are (a0 - a) times a positive polynomial, 7u each (a0 - a
    2, the polynomial 4, product 1); the sum in ``_logistic_slope`` then has 9u.
    """
    constants = coefficients.logistic_constants("tanh")
    linear, cubic = constants.linear_hi + constants.linear_lo, constants.cubic_hi
    square = torch.mul(a, constants.zero_hi).addcmul_(a, a).add_(constants.zero_hi**2)
    square.mul_(cubic + constants.cubic_lo)
    distance = torch.sub(constants.zero_hi, a).add_(constants.zero_lo)
    rise = torch.mul(square, 3.0).add_(linear).mul_(distance)
    gap = square.add_(linear).mul_(distance)
    return _logistic_slope(a, _tanh_argument(a), gap, rise, constants)


def sigmoid_slope(a: Tensor) -> Tensor:
    """Return f'(-a) of the ``sigmoid`` formula, error below 13u; here h = v, v0 - v has 2u."""
    constants = coefficients.logistic_constants("sigmoid")
    argument = _sigmoid_argument(a)
    high, low = argument
    gap = torch.sub(constants.argument_hi, high).add_(constants.argument_lo - low)
    return _logistic_slope(a, argument, gap, gap, constants)


def _gauss(a: Tensor) -> Tensor:
    """Return e^(-a²/2); a² is exact for inputs of fp32, so the error is that of exp alone."""
    return torch.mul(a, a).mul_(-0.5).exp_()


def _beyond_half(a: Tensor, table: tuple[Tensor, ...]) -> Tensor:
    """Return ``1/2 + s·P(t)``, s = 2a/(a + k), t = s - 1, P the polynomial of ``table``.

    Horner's rule without FMA has at most Σ(2j+2)|c_j t^j|·s u, which with the sum is 7.2u (W) and
    6.8u (V) of the result for t in [-1, 1]; s and t add 1.4u. FMA, where used, has less.
    """
    s = torch.div(a, torch.add(a, coefficients.MAP_CENTRE)).mul_(2.0)
    t = torch.sub(s, 1.0)
    result = torch.addcmul(table[-2], table[-1], t)
    for coefficient in table[-3::-1]:
        torch.addcmul(coefficient, result, t, out=result)
    return result.mul_(s).add_(0.5)


def _sigmoid_argument(a: Tensor) -> tuple[Tensor, Tensor]:
    """Return v = 1.702·a as (high, low): the first product is exact (29 + 24 bits)."""
    constants = coefficients.logistic_constants("sigmoid")
    return _fast_two_sum(torch.mul(a, constants.linear_hi), torch.mul(a, constants.linear_lo))


def _tanh_argument(a: Tensor) -> tuple[Tensor, Tensor]:
    """Return v = a·g, g = linear + cubic·a², as (high, low), absolute error below 2^-65 up to 745.

    a² is cut at 2^-16 so that its upper part times cubic_hi is exact (25 + 27 bits), g at 2^-23 so
    that its upper part times a is exact (29 + 24 bits); what is left of g is computed from terms
    that are exact or below 2^-20.
    """
    constants = coefficients.logistic_constants("tanh")
    square = torch.mul(a, a)
    upper = torch.add(square, _ROUND[-16]).sub_(_ROUND[-16])
    lower = torch.sub(square, upper)
    factor = torch.mul(square, constants.cubic_hi).add_(constants.linear_hi)
    factor.add_(_ROUND[-23]).sub_(_ROUND[-23])
    rest = torch.sub(constants.linear_hi, factor).add_(upper.mul_(constants.cubic_hi))
    small = square.mul_(constants.cubic_lo).add_(constants.linear_lo)
    rest.add_(small.add_(lower.mul_(constants.cubic_hi)))
    return _fast_two_sum(factor.mul_(a), rest.mul_(a))


def _fast_two_sum(larger: Tensor, smaller: Tensor) -> tuple[Tensor, Tensor]:
    """Return (high, low) with high + low = larger + smaller exactly (Dekker 1971)."""
    high = torch.add(larger, smaller)
    return high, larger.sub_(high).add_(smaller)


def _decay(argument: tuple[Tensor, Tensor]) -> Tensor:
    """Return e^-(high + low) = e^-high·(1 - low), error 3u: exp 2, correction 1 (low² < 2^-90)."""
    high, low = argument
    decay = torch.neg(high).exp_()
    return decay.sub_(low.mul_(decay))


def _logistic_tail(argument: tuple[Tensor, Tensor]) -> Tensor:
    """Return σ(-v) = E/(1 + E), E = e^-v: E 3u, denominator 1, quotient 1, slack 1."""
    decay = _decay(argument)
    return torch.div(decay, torch.add(decay, 1.0))


def _logistic_slope(
    a: Tensor,
    argument: tuple[Tensor, Tensor],
    gap: Tensor,
    rise: Tensor,
    constants: LogisticConstants,
) -> Tensor:
    """Return f'(-a) = E/(1+E)²·N, N = 1 + E - h, given gap = v0 - v and rise = h0 - h.

    At the zero a0, 1 + e^-v0 = h0, hence N = (h0 - h) + e^-v0·(e^(v0-v) - 1): two terms of one
    sign. e^d - 1 amplifies the relative error of d by d·e^d/(e^d - 1) <= 1.77 (d <= v0), so N has
    9u (``tanh``) or 5u (``sigmoid``); E/(1+E)² has 6u, quotient and product 2.
    """
    bracket = torch.expm1(gap).mul_(constants.decay).add_(rise)
    decay = _decay(argument)
    denominator = torch.add(decay, 1.0)
    result = decay.mul_(bracket).div_(denominator.mul_(denominator)).clamp_(max=0.5)
    # Within 2^-56 of 0 the derivative is 1/2 to within 0.2u; N need not be exactly 2 there.
    return result.masked_fill_(a < 2.0**-56, 0.5)


@cache
def _table(name: str, device: torch.device) -> tuple[Tensor, ...]:
    """Return the coefficients W or V on a device, as scalars that addcmul can take."""
    table = getattr(coefficients.erf_coefficients(), name)
    return torch.tensor(table, dtype=torch.float64, device=device).unbind()
