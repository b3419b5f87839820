"""Elementwise kernels that are all right, each in its own way."""

from __future__ import annotations

import math
from functools import cache
from typing import Any

import numpy as np
import torch
from torch import Tensor

from gelu_verify import contracts
from gelu_verify.contracts import AllowanceKind, Subnormals
from gelu_verify.selftest.entry import sound
from reference_kernels.sound import forms

#: ``tail_accurate``, but subnormal inputs and results may be 0.
_FLUSHING = contracts.get("tail_accurate").model_copy(
    update={"name": "flushing", "subnormals": Subnormals.FLUSH}
)

#: As ``cancelling``, but 2 - 2/(e + 1) is rounded at the size of 2, not of 1, and twice.
_ROUNDED_AT_TWO = contracts.get("cancelling").model_copy(
    update={
        "name": "rounded_at_two",
        "allowances": tuple(
            allowance.model_copy(update={"factor": 4.0})
            if allowance.kind is AllowanceKind.CANCELLATION
            else allowance
            for allowance in contracts.get("cancelling").allowances
        ),
    }
)
#: A fit with an absolute bound of 1.5e-7 is 3 % off where Φ is smallest: 16 units of bf16.
_COARSE_TAIL = contracts.get("cancelling").model_copy(
    update={"name": "coarse_tail", "max_error_ulp": 16.0}
)


@sound(contract="faithful", formats=("fp32", "bf16", "fp16"))
def one_rounding(x: Tensor) -> Tensor:
    """Computes in float64 and rounds once."""
    return forms.erf(x)


@sound(contract="tail_accurate", formats=("bf16", "fp16"))
def two_roundings(x: Tensor) -> Tensor:
    """Rounds the result to fp32, then to 16 bits."""
    forms.require_floats(x)
    return forms.erf(x.float()).to(x.dtype)


@sound(formats=("fp32", "bf16", "fp16"))
def textbook(x: Tensor) -> Tensor:
    """0.5x(1+erf) in fp32: loses what the default contract permits."""
    forms.require_floats(x)
    y = x.float()
    return (0.5 * y * (1 + torch.erf(y * forms.ROOT_HALF))).to(x.dtype)


@sound(formats=("fp32", "bf16"))
def divides_by_root_two(x: Tensor) -> Tensor:
    """x/√2 in place of x·√½, and (x + x·erf)/2 in place of x·(1 + erf)/2."""
    forms.require_floats(x)
    y = x.float()
    return (0.5 * y + 0.5 * y * torch.erf(y / math.sqrt(2))).to(x.dtype)


@sound(formats=("fp32",))
def fused_multiply_add(x: Tensor) -> Tensor:
    """0.5x·erf + 0.5x with a single rounding, as an FMA unit has it."""
    forms.require_floats(x)
    half = 0.5 * x
    gate = torch.erf(x * forms.ROOT_HALF)
    return (half.double() * gate.double() + half.double()).to(x.dtype)


@sound(contract="saturating", formats=("fp32", "bf16"))
def guarded(x: Tensor) -> Tensor:
    """0 below -6 and x above 6, under a contract that says so."""
    return torch.where(x < -6, -0.0, torch.where(x > 6, x, forms.erf(x)))


@sound(contract=_FLUSHING, formats=("fp32", "bf16"))
def flushes_as_declared(x: Tensor) -> Tensor:
    """Subnormal inputs and results become 0, under a contract that says so."""
    tiny = torch.finfo(x.dtype).smallest_normal
    y = forms.erf(torch.where(x.abs() < tiny, x * 0, x))
    return torch.where(y.abs() < tiny, y * 0, y)


@sound(contract="approximation", formats=("fp32",))
def tanh_where_it_may_stand_in(x: Tensor) -> Tensor:
    """The tanh form where erf is declared, under the contract that lets it."""
    return forms.tanh(x)


@sound(formula="tanh", contract="faithful", formats=("fp32", "bf16"))
def tanh_as_a_sigmoid(x: Tensor) -> Tensor:
    """x·σ(2u), which has no cancellation."""
    return forms.tanh(x)


@sound(formula="tanh", formats=("fp32",))
def tanh_textbook(x: Tensor) -> Tensor:
    """0.5x(1+tanh(u)) in fp32, the cube by Horner's scheme."""
    forms.require_floats(x)
    y = x.float()
    u = forms.ROOT_TWO_OVER_PI * y * (1 + 0.044715 * y * y)
    return (0.5 * y * (1 + torch.tanh(u))).to(x.dtype)


@sound(formula="tanh", contract=_ROUNDED_AT_TWO, formats=("fp32",))
def tanh_by_one_exponential(x: Tensor) -> Tensor:
    """tanh(u) = 1 - 2/(e^2u + 1): an exponential that overflows gives 1, not NaN."""
    forms.require_floats(x)
    y = x.float()
    u = forms.ROOT_TWO_OVER_PI * (y + 0.044715 * y * y * y)
    return (0.5 * y * (2 - 2 / (torch.exp(2 * u) + 1))).to(x.dtype)


@sound(formula="sigmoid", contract="faithful", formats=("fp32", "bf16"))
def sigmoid_once(x: Tensor) -> Tensor:
    """x·σ(1.702x), rounded once."""
    return forms.sigmoid(x)


@sound(formula="sigmoid", formats=("fp32",))
def sigmoid_in_fp32(x: Tensor) -> Tensor:
    """x/(1 + e^-1.702x) in fp32, a quotient in place of a product."""
    forms.require_floats(x)
    return x / (1 + torch.exp(-1.702 * x))


@sound(contract="tail_accurate", formats=("fp32",))
def erf_by_numpy_and_scipy(x: Tensor) -> Tensor:
    """scipy's Φ in float64 (Cephes), through NumPy."""
    from scipy.special import ndtr

    forms.require_floats(x)
    y = x.detach().cpu().double().numpy()
    with np.errstate(invalid="ignore"):
        value = np.copysign(np.maximum(y, -200.0) * ndtr(y), y)
    return torch.from_numpy(np.asarray(value)).to(device=x.device, dtype=x.dtype)


@sound(contract="tail_accurate", formats=("fp32", "bf16"))
def erf_by_a_scaled_complement(x: Tensor) -> Tensor:
    """erfc(z) = e^-z²·erfcx(z), the exponential and the scaled function apart."""
    forms.require_floats(x)
    y = x.detach().double().clamp(min=-200.0)
    z = y.abs() * forms.ROOT_HALF
    tail = 0.5 * torch.exp(-z * z) * torch.special.erfcx(z)
    value = y * torch.where(y < 0, tail, 1 - tail)
    return torch.copysign(torch.where(y.isinf(), y, value), x.double()).to(x.dtype)


@sound(contract=_COARSE_TAIL, formats=("bf16",))
def erf_of_abramowitz_and_stegun(x: Tensor) -> Tensor:
    """Their 7.1.26, off by 1.5e-7 at most, with the tail as e^-z²·p."""
    forms.require_floats(x)
    y = x.detach().double().clamp(min=-200.0)
    z = y.abs() * forms.ROOT_HALF
    t = 1 / (1 + 0.3275911 * z)
    polynomial = t * (
        0.254829592 + t * (-0.284496736 + t * (1.421413741 + t * (-1.453152027 + t * 1.061405429)))
    )
    tail = 0.5 * polynomial * torch.exp(-z * z)
    value = y * torch.where(y < 0, tail, 1 - tail)
    return torch.copysign(torch.where(y.isinf(), y, value), x.double()).to(x.dtype)


@sound(contract="tail_accurate", formats=("bf16", "fp16"))
def table_of_every_pattern(x: Tensor) -> Tensor:
    """Looks every 16-bit pattern up in a table of 65,536 results."""
    forms.require_floats(x)
    index = x.contiguous().view(torch.int16).int() & 0xFFFF
    return _table(x.dtype, x.device)[index]


@cache
def _table(dtype: torch.dtype, device: torch.device) -> Tensor:
    patterns = torch.arange(1 << 16, device=device).to(torch.int16)
    return forms.erf(patterns.view(dtype))


class _Recomputed(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        ctx.save_for_backward(x)
        return forms.erf(x)

    @staticmethod
    def backward(ctx: Any, dy: Tensor) -> Tensor:
        (x,) = ctx.saved_tensors
        return forms.backward(dy, x)


@sound(gradient="too", contract="tail_accurate", formats=("fp32", "bf16"))
def own_backward(x: Tensor) -> Tensor:
    """An autograd function that saves x and computes the derivative from it."""
    result: Tensor = _Recomputed.apply(x)
    return result


@sound(operator="gelu_backward", contract="tail_accurate", formats=("fp32", "bf16"))
def derivative_once(dy: Tensor, x: Tensor) -> Tensor:
    """dy·(Φ + xφ) in float64, rounded once."""
    return forms.backward(dy, x)


@sound(operator="gelu_backward", formats=("fp32",))
def derivative_in_fp32(dy: Tensor, x: Tensor) -> Tensor:
    """dy·((1+erf)/2 + xφ) in fp32, as frameworks write it."""
    forms.require_floats(dy, x)
    y = x.clamp(-60.0, 60.0)
    phi = 0.5 * (1 + torch.erf(y * forms.ROOT_HALF))
    return dy * (phi + y * torch.exp(-0.5 * y * y) / math.sqrt(2 * math.pi))


@sound(operator="bias_gelu", contract="tail_accurate", formats=("fp32",))
def bias_added_exactly(x: Tensor, bias: Tensor) -> Tensor:
    """x + bias in float64, one rounding at the end."""
    return forms.bias(x, bias)


@sound(operator="bias_gelu", contract="tail_accurate", formats=("bf16",))
def bias_rounded_first(x: Tensor, bias: Tensor) -> Tensor:
    """x + bias rounded to the format, as eager mode has it."""
    forms.require_floats(x, bias)
    return forms.erf(x + bias)


@sound(operator="geglu", contract="tail_accurate", formats=("fp32",))
def gate_multiplied_exactly(gate: Tensor, up: Tensor) -> Tensor:
    """f(gate)·up in float64, one rounding at the end."""
    return forms.geglu(gate, up)


@sound(operator="geglu", contract="tail_accurate", formats=("bf16",))
def gate_rounded_first(gate: Tensor, up: Tensor) -> Tensor:
    """f(gate) rounded to the format before it is multiplied, as eager mode has it."""
    forms.require_floats(gate, up)
    return forms.erf(gate) * up.detach()


@sound(contract="tail_accurate", formats=("fp32", "bf16"))
def any_layout_made_contiguous(x: Tensor) -> Tensor:
    """Copies what is not contiguous, computes in blocks of 1000, returns a contiguous result."""
    forms.require_floats(x)
    flat = x.detach().contiguous().reshape(-1)
    out = torch.empty_like(flat)
    for start in range(0, flat.numel(), 1000):
        out[start : start + 1000] = forms.erf(flat[start : start + 1000])
    return out.reshape(x.shape)
