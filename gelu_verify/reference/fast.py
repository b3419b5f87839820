"""The fast reference: GELU and its derivative in float64 for inputs that fp32 holds exactly.

Every value of fp32, fp16, bf16 and the fp8 formats qualifies, on any torch device. With a = |x|
and the left tails of :mod:`gelu_verify.reference.tails`, which have no cancellation,

    Φ(x)  = q(a) for x < 0,   1 - q(a) for x >= 0;       f(x)  = x·Φ(x)
    f'(x) = d(a) for x < 0,   1 - d(a) for x >= 0        (f' is symmetric about the point (0, 1/2))

Special values: f(±0) = ±0, f'(±0) = 1/2; f(+∞) = +∞, f(-∞) = -0; f'(+∞) = 1, f'(-∞) = -0; NaN gives
NaN. Where the exact result is below 2^-1000 a factor of it may be subnormal in float64, and the
result loses digits or is -0: far below the smallest number of fp32.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

import torch
from torch import Tensor

from gelu_verify.errors import UsageError, unknown_name
from gelu_verify.reference import tails

#: ``|float64 - exact| <= RELATIVE_ERROR_BOUND[formula, derivative] · 2^-53 · |exact|`` for every
#: x of fp32 whose exact result is at least 2^-1000. A sum of the worst cases of every rounding,
#: from the docstrings of ``tails``: the tail, plus 1 for the product with x, or for 1 - d where
#: x >= 0 (there the tail's own error counts d/(1-d) <= 1 times). Worst error seen where fp32 does
#: not underflow, in the order below: 3.9, 4.7, 4.3, 7.1, 4.3, 6.1; further left 8.9 (``erf``).
RELATIVE_ERROR_BOUND: Mapping[tuple[str, int], float] = MappingProxyType(
    {
        ("erf", 0): 16.0,
        ("erf", 1): 17.0,
        ("tanh", 0): 8.0,
        ("tanh", 1): 18.0,
        ("sigmoid", 0): 8.0,
        ("sigmoid", 1): 14.0,
    }
)

#: Elements a chunk on the CPU: the temporaries of one chunk stay in the second-level cache.
CHUNK = 16384
#: |x| from which every tail is 0 in float64 (the slowest, e^(-1.702·a), at 438).
_FAR = 512.0

_TAILS = {"erf": tails.erf_tail, "tanh": tails.tanh_tail, "sigmoid": tails.sigmoid_tail}
_SLOPES = {"erf": tails.erf_slope, "tanh": tails.tanh_slope, "sigmoid": tails.sigmoid_slope}


def gelu(x: Tensor, formula: str = "erf") -> Tensor:
    """Return the formula's value, float64, the shape of ``x``.

    x: float64 tensor of values that fp32 holds exactly, on any device.
    Relative error: ``RELATIVE_ERROR_BOUND[formula, 0]`` units of 2^-53.
    Raises UsageError for another dtype or an unknown formula.
    """
    tail = _named(_TAILS, formula)
    return _in_chunks(lambda part: _value(part, tail), x)


def derivative(x: Tensor, formula: str = "erf") -> Tensor:
    """Return the formula's derivative, float64, the shape of ``x``.

    x: float64 tensor of values that fp32 holds exactly, on any device.
    Relative error: ``RELATIVE_ERROR_BOUND[formula, 1]`` units of 2^-53, at its zero too.
    Raises UsageError for another dtype or an unknown formula.
    """
    slope = _named(_SLOPES, formula)
    return _in_chunks(lambda part: _derivative(part, slope), x)


def inward(x: Tensor, derivative: int = 0) -> Tensor:
    """Tell where the exact value is nearer to zero than a power of two that it rounds to.

    Where ``gelu`` or ``derivative`` gives exactly a power of two in a closed-form zone (f = x/2 and
    f' = 1/2 next to 0, f = x and f' = 1 far right), the exact value lies on one side of it, and its
    ULP is that of the side. For the three formulas, f(x) = x·s(x) with s rising, s(0) = 1/2 and
    0 < s < 1:

    - f, x < 0: s < 1/2, so |f| < |x|/2: True. 0 < x <= 1, f near x/2: s > 1/2: False.
      x > 1, f near x: s < 1: True.
    - f' = s + x·s', f'(x) + f'(-x) = 1. f' has its extremes where f'' = 0 and rises between them,
      through 1/2 at 0: x < 0: f' < 1/2 next to 0: True; x >= 0: f' >= 1/2 next to 0, and f' > 1
      far right because f'(-x) < 0 there: False.

    Returns a bool tensor of the shape of ``x``.
    """
    if derivative == 0:
        return (x < 0) | (x > 1)
    return x < 0


def _value(x: Tensor, tail: Callable[[Tensor], Tensor]) -> Tensor:
    # |step - q| is q or 1 - q: exact selection without a branch. -∞·0 is avoided by the clamp.
    result = tail(x.abs().clamp_(max=_FAR))
    step = torch.ge(x, 0.0, out=torch.empty_like(result))
    torch.sub(step, result, out=result).abs_()
    return result.mul_(torch.clamp(x, min=-_FAR, out=step))


def _derivative(x: Tensor, slope: Callable[[Tensor], Tensor]) -> Tensor:
    left = slope(x.abs().clamp_(max=_FAR))
    return torch.where(x < 0.0, left, 1.0 - left)


def _in_chunks(function: Callable[[Tensor], Tensor], x: Tensor) -> Tensor:
    """Apply an element-wise function chunk by chunk on the CPU, at once elsewhere."""
    if x.dtype != torch.float64:
        raise UsageError(
            f"fast reference: got x of {x.dtype}, expected torch.float64. Convert with x.double()."
        )
    flat = x.detach().reshape(-1)
    if x.device.type != "cpu" or flat.numel() <= CHUNK:
        return function(flat).reshape(x.shape)
    result = torch.empty_like(flat, memory_format=torch.contiguous_format)
    for part, out in zip(torch.split(flat, CHUNK), torch.split(result, CHUNK), strict=True):
        out.copy_(function(part))
    return result.reshape(x.shape)


def _named(
    functions: Mapping[str, Callable[[Tensor], Tensor]], formula: str
) -> Callable[[Tensor], Tensor]:
    if formula not in functions:
        raise unknown_name("formula", formula, functions)
    return functions[formula]
