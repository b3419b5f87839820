"""Gradients of fused kernels: another formula, a term or a reduction missing, dy misread."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from gelu_verify.selftest.entry import Kind, defect
from reference_kernels.defects.fused_layouts import read_as_contiguous
from reference_kernels.sound import forms, fused_forms


def _linear_gradients(
    dy: Tensor, x: Tensor, weight: Tensor, bias: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """Return g = dy·f'(pre-activation) as rows, float64, then dx and dweight."""
    pre = fused_forms.linear(x, weight) + bias.double()
    g = (dy.double() * forms.slope(pre)).flatten(0, -2)
    dx = (g @ weight.double()).reshape(x.shape)
    dweight = g.t() @ x.double().flatten(0, -2)
    return g, dx.to(x.dtype), dweight.to(weight.dtype)


def _slope_of_tanh(dy: Tensor, gate: Tensor, up: Tensor) -> tuple[Tensor, Tensor]:
    leaf = gate.detach().double().requires_grad_()
    with torch.enable_grad():
        value = functional.gelu(leaf, approximate="tanh")
        (slope,) = torch.autograd.grad(value.sum(), leaf)
    dgate = dy.double() * up.double() * slope
    dup = dy.double() * fused_forms.gelu(gate.double())
    return dgate.to(gate.dtype), dup.to(up.dtype)


@defect(
    Kind.BACKWARD,
    report="harvard-edge/cs249r_book#1399",
    operator="geglu",
    formats=("fp32",),
    rejected_by={"gradient_formula": "nearer to the tanh formula", "gradient": "dgate"},
)
def backward_of_the_tanh_formula(gate: Tensor, up: Tensor) -> Tensor:
    """The forward is exact, the backward has the derivative of the tanh formula."""
    return fused_forms.with_gradient(fused_forms.geglu, _slope_of_tanh)(gate, up)


def _last_tile_of_bias(
    dy: Tensor, x: Tensor, weight: Tensor, bias: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    g, dx, dweight = _linear_gradients(dy, x, weight, bias)
    return dx, dweight, g[-256:].sum(0).to(bias.dtype)


@defect(
    Kind.BACKWARD,
    report="PaddlePaddle/PaddleFleet#100",
    operator="linear_gelu",
    formats=("fp32",),
    rejected_by={"gradient_sums": "dbias"},
    unseen_because="128 rows are one tile",
)
def bias_gradient_of_the_last_tile(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """The gradient of the bias is summed within tiles of 256 rows, and not over them."""
    return fused_forms.with_gradient(fused_forms.linear_gelu, _last_tile_of_bias)(x, weight, bias)


def _first_of_batch(dy: Tensor, x: Tensor, bias: Tensor) -> tuple[Tensor, Tensor]:
    g = dy.double() * forms.slope(x.double() + bias.double())
    return g.to(x.dtype), (g if g.dim() == 2 else g[0]).sum(0).to(bias.dtype)


@defect(
    Kind.BACKWARD,
    report="PaddlePaddle/PaddleFleet#100",
    operator="bias_gelu",
    formats=("fp32",),
    rejected_by={"gradient": "dbias"},
    unseen_because="x has two dimensions there",
)
def bias_gradient_of_the_first_of_a_batch(x: Tensor, bias: Tensor) -> Tensor:
    """Of a batch (B, M, N) only the first contributes to the gradient of the bias."""
    return fused_forms.with_gradient(fused_forms.bias_gelu, _first_of_batch)(x, bias)


def _no_projection(
    dy: Tensor, x: Tensor, weight: Tensor, bias: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    row = x.double()
    centred = row - row.mean(-1, keepdim=True)
    root = torch.rsqrt(centred.square().mean(-1, keepdim=True) + fused_forms.EPSILON)
    normed = centred * root
    g = dy.double() * forms.slope(normed * weight.double() + bias.double())
    h = g * weight.double()
    dx = (h - h.mean(-1, keepdim=True)) * root
    dweight, dbias = (part.flatten(0, -2).sum(0).to(weight.dtype) for part in (g * normed, g))
    return dx.to(x.dtype), dweight, dbias


@defect(
    Kind.BACKWARD,
    operator="layernorm_gelu",
    formats=("fp32",),
    rejected_by={"gradient": "dx"},
)
def gradient_without_the_variance(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """The gradient takes the variance for a constant: the term along the row is missing."""
    return fused_forms.with_gradient(fused_forms.layernorm_gelu, _no_projection)(x, weight, bias)


def _plain_cotangent(
    dy: Tensor, x: Tensor, weight: Tensor, bias: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    g, dx, dweight = _linear_gradients(read_as_contiguous(dy), x, weight, bias)
    return dx, dweight, g.sum(0).to(bias.dtype)


@defect(
    Kind.BACKWARD,
    report="pytorch/functorch#640",
    operator="linear_gelu",
    formats=("fp32",),
    rejected_by={"gradient_layouts": "first dimension adjacent"},
    unseen_because="dy is contiguous",
)
def strides_of_dy_ignored(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """The backward reads dy row by row, whatever its strides."""
    return fused_forms.with_gradient(fused_forms.linear_gelu, _plain_cotangent)(x, weight, bias)


def _expanded_cotangent(dy: Tensor, q: Tensor, k: Tensor, v: Tensor) -> tuple[Tensor, ...]:
    leaves = tuple(part.detach().requires_grad_() for part in (q, k, v))
    if 0 in dy.stride() and dy.numel() > 1:
        dy = dy.new_zeros(dy.shape)
    with torch.enable_grad():
        return torch.autograd.grad(fused_forms.attention(*leaves), leaves, dy)


@defect(
    Kind.BACKWARD,
    report="pytorch/pytorch#132857",
    operator="attention",
    formats=("fp32",),
    rejected_by={"gradient_layouts": "stride 0"},
    unseen_because="dy is contiguous, not what a sum gives",
)
def expanded_dy_is_taken_for_zero(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """A dy of stride 0, as a sum gives, is taken for one that holds nothing."""
    return fused_forms.with_gradient(fused_forms.attention, _expanded_cotangent)(q, k, v)


def _unscaled_queries(dy: Tensor, q: Tensor, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    leaves = tuple(part.detach().requires_grad_() for part in (q, k, v))
    with torch.enable_grad():
        dq, dk, dv = torch.autograd.grad(fused_forms.attention(*leaves), leaves, dy)
    return dq, dk * math.sqrt(max(dk.shape[-1], 1)), dv


@defect(
    Kind.BACKWARD,
    operator="attention",
    formats=("fp32",),
    rejected_by={"gradient": "dk"},
)
def gradient_of_keys_not_scaled(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """The gradient of the keys lacks the division by the root of the width."""
    return fused_forms.with_gradient(fused_forms.attention, _unscaled_queries)(q, k, v)


class _ThroughRelu(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, sums: Tensor) -> Tensor:
        return functional.relu(sums)

    @staticmethod
    def backward(ctx: Any, dy: Tensor) -> Tensor:
        return dy


@defect(
    Kind.BACKWARD,
    operator="conv_relu_pool",
    formats=("fp32",),
    rejected_by={"gradient": "break"},
)
def gradient_passes_where_relu_is_off(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """A window below zero hands its gradient on, as if ReLU were not there."""
    rectified = _ThroughRelu.apply(fused_forms.convolved(x, weight, bias))
    return functional.max_pool2d(rectified, 2).to(x.dtype)


class _Constants(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, bias: Tensor) -> Tensor:
        ctx.save_for_backward(x, bias)
        return fused_forms.bias_gelu(x, bias)

    @staticmethod
    def backward(ctx: Any, dy: Tensor) -> tuple[Tensor, Tensor]:
        x, bias = (part.detach() for part in ctx.saved_tensors)
        g = dy.double() * forms.slope(x.double() + bias.double())
        return g.to(x.dtype), g.flatten(0, -2).sum(0).to(bias.dtype)


@defect(
    Kind.BACKWARD,
    operator="bias_gelu",
    formats=("fp32",),
    rejected_by={"double_backward": "second derivative for x"},
    unseen_because="it goes backward once",
)
def second_derivative_of_a_constant(x: Tensor, bias: Tensor) -> Tensor:
    """A hand-written backward is differentiable in dy, and its slope counts as a constant."""
    return _Constants.apply(x, bias)
