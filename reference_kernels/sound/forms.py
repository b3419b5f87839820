"""Sound GELU kernels that defects and variants are built on, of any float dtype.

Each computes in float64 and rounds once (torch rounds float64 to bf16 through float32, which is
another rounding at most once in 2^16 values), so that what is wrong with a defect is its fault and
nothing else.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor

#: √½ and √(2/π).
ROOT_HALF = 0.7071067811865476
ROOT_TWO_OVER_PI = 0.7978845608028654

#: Below it every formula rounds to -0 in fp32 and narrower formats; -inf·0 would be NaN.
_FAR_LEFT = -200.0


def erf(x: Tensor) -> Tensor:
    """Return x·Φ(x) as x·erfc(-x/√2)/2, rounded once."""
    return _rounded_once(lambda y: 0.5 * y * torch.erfc(-y * ROOT_HALF), x)


def tanh(x: Tensor) -> Tensor:
    """Return the tanh formula as x·σ(2u), rounded once."""
    return _rounded_once(
        lambda y: y * torch.sigmoid(2 * ROOT_TWO_OVER_PI * (y + 0.044715 * y**3)), x
    )


def sigmoid(x: Tensor) -> Tensor:
    """Return x·σ(1.702x), rounded once."""
    return _rounded_once(lambda y: y * torch.sigmoid(1.702 * y), x)


def backward(dy: Tensor, x: Tensor) -> Tensor:
    """Return dy·(Φ(x) + xφ(x)), rounded once; the limits 1 and -0 at the infinities."""
    require_floats(dy, x)
    return (dy.double() * slope(x.double())).to(x.dtype)


def slope(x: Tensor) -> Tensor:
    """Return Φ(x) + xφ(x) in the dtype of x."""
    y = x.clamp(-60.0, 60.0)
    density = torch.exp(-0.5 * y * y) / math.sqrt(2 * math.pi)
    value = 0.5 * torch.erfc(-y * ROOT_HALF) + y * density
    return torch.where(y < -1.0, -value.abs(), value)


def bias(x: Tensor, bias: Tensor) -> Tensor:
    """Return f(x + bias), the sum exact as far as float64 goes, rounded once; bias (N,)."""
    require_floats(x, bias)
    x, bias = x.detach(), bias.detach()
    total = x.double() + bias.double()
    return torch.copysign(_wide_erf(total), total).to(x.dtype)


def geglu(gate: Tensor, up: Tensor) -> Tensor:
    """Return f(gate)·up, rounded once."""
    require_floats(gate, up)
    gate, up = gate.detach(), up.detach()
    value = torch.copysign(_wide_erf(gate.double()), gate.double())
    return (value * up.double()).to(gate.dtype)


def require_floats(*arguments: Tensor) -> None:
    """Raise TypeError for integers: a result of their dtype would be cut off."""
    for part in arguments:
        if not part.is_floating_point():
            raise TypeError(f"x: got {part.dtype}, expected a floating-point tensor. Convert it.")


def _wide_erf(x: Tensor) -> Tensor:
    y = x.clamp(min=_FAR_LEFT)
    return 0.5 * y * torch.erfc(-y * ROOT_HALF)


def _rounded_once(function: Callable[[Tensor], Tensor], x: Tensor) -> Tensor:
    """Apply a function in float64; every formula has the sign of x, also where it underflows."""
    require_floats(x)
    wide = x.detach().double()
    return torch.copysign(function(wide.clamp(min=_FAR_LEFT)), wide).to(x.dtype)
