"""Small GELU kernels: sound ones first, then each with one fault. All take and give torch tensors.

A kernel in fp32, fp16 or bf16 computes in float64 and rounds once (torch rounds float64 to bf16
through float32: a double rounding at most once in 2^16 values, none of them a fault here), so that
what is wrong with a faulty one is its fault and nothing else.
"""

from __future__ import annotations

import itertools
import math

import torch
from torch import Tensor

ROOT_HALF = 0.7071067811865476
C = math.sqrt(2 / math.pi)


def _require_floats(*arguments: Tensor) -> None:
    if not all(part.is_floating_point() for part in arguments):
        raise TypeError("got integers, expected floating-point tensors")


def _once(function):
    """Compute in float64, round once; -inf gives -0 and not NaN."""

    def kernel(x: Tensor) -> Tensor:
        _require_floats(x)
        x = x.detach()  # copysign has no gradient of use
        wide = x.double().clamp(min=-200.0)
        return torch.copysign(function(wide), x.double()).to(x.dtype)

    return kernel


def _erf(x: Tensor) -> Tensor:
    return 0.5 * x * torch.erfc(-x * ROOT_HALF)


def _tanh_form(x: Tensor, a: float = C, b: float = 0.044715) -> Tensor:
    return x * torch.sigmoid(2 * a * (x + b * x**3))


# Sound.
correct = _once(_erf)
correct_tanh = _once(_tanh_form)
correct_sigmoid = _once(lambda x: x * torch.sigmoid(1.702 * x))


def textbook(x: Tensor) -> Tensor:
    _require_floats(x)
    y = x.float()
    return (0.5 * y * (1 + torch.erf(y * ROOT_HALF))).to(x.dtype)


def guarded(x: Tensor) -> Tensor:
    return torch.where(x < -6, -0.0, torch.where(x > 6, x, correct(x)))


def correct_backward(dy: Tensor, x: Tensor) -> Tensor:
    _require_floats(dy, x)
    return (dy.double() * _slope(x.double())).to(x.dtype)


def _slope(x: Tensor) -> Tensor:
    y = x.clamp(-60.0, 60.0)
    slope = 0.5 * torch.erfc(-y * ROOT_HALF) + y * torch.exp(-0.5 * y * y) / math.sqrt(2 * math.pi)
    return torch.where(y < -1.0, -slope.abs(), slope)  # -0 at the far left


# Special values.
def nan_at_infinity_in_vectors(x: Tensor) -> Tensor:
    y = correct(x)
    return y if x.numel() < 8 else torch.where(x == torch.inf, torch.nan, y)


def nan_becomes_clamp_bound(x: Tensor) -> Tensor:
    y = torch.where(torch.isnan(x), -6.0, x)
    return correct(y)


def nan_at_minus_infinity(x: Tensor) -> Tensor:
    return torch.where(x == -torch.inf, torch.nan, correct(x))


def minus_infinity_passes_through(x: Tensor) -> Tensor:
    return torch.where(x == -torch.inf, x, correct(x))


def positive_zero(x: Tensor) -> Tensor:
    return torch.where(x == 0, 0.0, correct(x))


def flushes_subnormals(x: Tensor) -> Tensor:
    tiny = torch.finfo(x.dtype).smallest_normal
    y = correct(torch.where(x.abs() < tiny, x * 0, x))
    return torch.where(y.abs() < tiny, y * 0, y)


def largest_overflows(x: Tensor) -> Tensor:
    return torch.where(x == torch.finfo(x.dtype).max, torch.inf, correct(x))


def wrong_in_remainder_lanes(x: Tensor) -> Tensor:
    """The last numel % 8 elements see max(NaN, x) as x."""
    y = correct(x).clone()
    rest = y.numel() % 8
    if rest and x.dim() == 1:
        tail = y[-rest:]
        tail[torch.isnan(tail)] = 0.0
    return y


# Formula.
quick_1773 = _once(lambda x: x * torch.sigmoid(1.773 * x))
erf_of_070 = _once(lambda x: 0.5 * x * torch.erfc(-x * 0.70))
tanh_other_constants = _once(lambda x: _tanh_form(x, 0.8, 0.03))


# Shape of the curve.
def non_monotone_tail(x: Tensor) -> Tensor:
    return torch.where((x > -4.0) & (x < -3.9), 2 * correct(x), correct(x))


def flat_in_fit_domain(x: Tensor) -> Tensor:
    return correct(torch.where(x < -4.0, -4.0, x))


def above_identity(x: Tensor) -> Tensor:
    return torch.where((x > 2.0) & (x < 3.0), x * 1.25, correct(x))


def sign_flips_at_one(x: Tensor) -> Tensor:
    return torch.where(x == -1.0, 0.16, correct(x).double()).to(x.dtype)


def exp_quotient(x: Tensor) -> Tensor:
    """Tanh as (e^2u - 1)/(e^2u + 1) in fp32: inf/inf from x = 10.06 on."""
    y = x.float()
    e = torch.exp(2 * C * (y + 0.044715 * y**3))
    return (0.5 * y * (1 + (e - 1) / (e + 1))).to(x.dtype)


def half_cube(x: Tensor) -> Tensor:
    """The cube in the format itself, and a tanh that does not saturate: NaN where it overflows."""
    u = C * (x + 0.044715 * x * x * x)
    return torch.where(torch.isinf(u) & torch.isfinite(x), torch.nan, correct_tanh(x))


# Guards.
def guard_cuts_at_two(x: Tensor) -> Tensor:
    return torch.where(x < -2.0, -0.0, torch.where(x > 2.0, x, correct(x)))


# Routes.
def ignores_strides(x: Tensor) -> Tensor:
    flat = torch.as_strided(x, (x.numel(),), (1,)) if not x.is_contiguous() else x.reshape(-1)
    return correct(flat).reshape(x.shape)


def wrong_if_expanded(x: Tensor) -> Tensor:
    return correct(x) * (2 if x.numel() > 1 and 0 in x.stride() else 1)


def wrong_if_offset(x: Tensor) -> Tensor:
    return correct(x) * (2 if x.storage_offset() else 1)


def wrong_if_scalar(x: Tensor) -> Tensor:
    return correct(x) * (2 if x.dim() == 0 else 1)


def wrong_if_short(x: Tensor) -> Tensor:
    return correct(x) * (2 if x.dim() == 1 and x.numel() < 8 else 1)


def last_bit_differs_if_short(x: Tensor) -> Tensor:
    y = correct(x)
    if x.dim() != 1 or x.numel() >= 8:
        return y
    return torch.where((y > 0.5) & (y < 100), torch.nextafter(y, torch.full_like(y, 1e9)), y)


def demands_contiguous(x: Tensor) -> Tensor:
    assert x.is_contiguous()
    return correct(x)


# Conduct.
def raises_on_empty(x: Tensor) -> Tensor:
    if x.numel() == 0:
        raise RuntimeError("invalid configuration argument")
    return correct(x)


def other_dtype(x: Tensor) -> Tensor:
    return correct(x).double()


def other_shape(x: Tensor) -> Tensor:
    return correct(x)[None]


def other_device(x: Tensor) -> Tensor:
    return torch.empty_like(x, device="meta")


def overwrites_input(x: Tensor) -> Tensor:
    y = correct(x)
    if x.numel():
        x.zero_()
    return y


class SameBuffer:
    """Returns one storage for every call of a shape."""

    def __init__(self) -> None:
        self.buffers = {}

    def __call__(self, x: Tensor) -> Tensor:
        out = self.buffers.setdefault(x.shape, torch.empty(x.shape, dtype=x.dtype))
        return out.copy_(correct(x))


class Restless:
    """Every second call is one step off at 1."""

    def __init__(self) -> None:
        self.calls = itertools.count()

    def __call__(self, x: Tensor) -> Tensor:
        y = correct(x)
        return (
            y if next(self.calls) % 2 else torch.where((x > 1) & (x < 2), y * 1.01, y).to(x.dtype)
        )


# Backward.
def wrong_sign_near_minus_37(dy: Tensor, x: Tensor) -> Tensor:
    y = correct_backward(dy, x)
    return torch.where((x > -3.8) & (x < -3.6), -y, y)


def without_density(dy: Tensor, x: Tensor) -> Tensor:
    return (dy.double() * 0.5 * torch.erfc(-x.double() * ROOT_HALF)).to(x.dtype)


def derivative_one_too_early(dy: Tensor, x: Tensor) -> Tensor:
    return torch.where(x > 2.0, dy, correct_backward(dy, x))


def nan_at_large(dy: Tensor, x: Tensor) -> Tensor:
    return torch.where((x > 100) & torch.isfinite(x), torch.nan, correct_backward(dy, x))


def nan_at_infinities(dy: Tensor, x: Tensor) -> Tensor:
    return torch.where(torch.isinf(x), torch.nan, correct_backward(dy, x))


def differentiable(backward_kernel):
    """A sound forward whose gradient is ``backward_kernel``."""

    class Kernel(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return correct(x)

        @staticmethod
        def backward(ctx, dy):
            return backward_kernel(dy, ctx.saved_tensors[0])

    return Kernel.apply


# Two arguments. x (..., N), bias (N,); gate and up of one shape. Sound ones first.
def bias_once(x: Tensor, bias: Tensor) -> Tensor:
    """The exact sum, as good as float64 has it, and one rounding."""
    _require_floats(x, bias)
    s = x.double() + bias.double()
    return torch.copysign(_erf(s.clamp(min=-200.0)), s).to(x.dtype)


def bias_eager(x: Tensor, bias: Tensor) -> Tensor:
    """The sum rounded to the format first."""
    _require_floats(x, bias)
    return correct(x + bias)


def geglu_once(gate: Tensor, up: Tensor) -> Tensor:
    _require_floats(gate, up)
    wide = gate.double().clamp(min=-200.0)
    return (torch.copysign(_erf(wide), gate.double()) * up.double()).to(gate.dtype)


def geglu_eager(gate: Tensor, up: Tensor) -> Tensor:
    """f(gate) rounded to the format first."""
    _require_floats(gate, up)
    return correct(gate) * up


def bias_ignored(x: Tensor, bias: Tensor) -> Tensor:
    return correct(x)


def bias_twice(x: Tensor, bias: Tensor) -> Tensor:
    return bias_once(x, 2 * bias.double())


def bias_after(x: Tensor, bias: Tensor) -> Tensor:
    return (correct(x).double() + bias.double()).to(x.dtype)


def bias_tanh(x: Tensor, bias: Tensor) -> Tensor:
    return correct_tanh(x + bias)


def bias_by_row(x: Tensor, bias: Tensor) -> Tensor:
    """Every row but the first takes the bias of column 0."""
    row = torch.zeros_like(x).reshape(-1, x.shape[-1])
    row[:1], row[1:] = bias, bias[:1]
    return bias_eager(x, row.reshape(x.shape))


def bias_through_bf16(x: Tensor, bias: Tensor) -> Tensor:
    """The sum in bf16, whatever the format."""
    return correct((x + bias).bfloat16().to(x.dtype))


def bias_nan_dropped(x: Tensor, bias: Tensor) -> Tensor:
    return bias_once(x, bias.nan_to_num(nan=0.0, posinf=torch.inf, neginf=-torch.inf))


def geglu_swapped(gate: Tensor, up: Tensor) -> Tensor:
    return geglu_once(up, gate)


def geglu_up_ignored(gate: Tensor, up: Tensor) -> Tensor:
    return correct(gate)


def geglu_tanh(gate: Tensor, up: Tensor) -> Tensor:
    return correct_tanh(gate) * up


def geglu_coarse(gate: Tensor, up: Tensor) -> Tensor:
    """f(gate) kept in four bits."""
    return (correct(gate).to(torch.float8_e4m3fn).double() * up.double()).to(gate.dtype)


def geglu_fma(gate: Tensor, up: Tensor) -> Tensor:
    """Adds the gate."""
    return (geglu_once(gate, up).double() + gate.double()).to(gate.dtype)
