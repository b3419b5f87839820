"""Fused kernels that are all right: other orders of sums, roundings and ways to a variance."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.nn import functional

from gelu_verify.kernels.spec import Declared
from gelu_verify.selftest.entry import sound
from reference_kernels.sound import forms, fused_forms

_LANES = 8


def _ends(sums: Tensor, bias: Tensor, dtype: torch.dtype) -> Tensor:
    """Return f(sums + bias), computed in float64 and rounded once."""
    return fused_forms.gelu(sums.double() + bias.double()).to(dtype)


@sound(operator="linear_gelu", formats=("bf16",))
def sums_in_fp64(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """Computes in float64 and rounds once."""
    return fused_forms.linear_gelu(x, weight, bias)


@sound(operator="linear_gelu", formats=("fp32",))
def four_splits(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """K is split in four, the fp32 sums of which are added at the end."""
    length = max(-(-x.shape[-1] // 4), 1)
    pairs = zip(x.float().split(length, -1), weight.float().split(length, -1), strict=True)
    sums = torch.stack([functional.linear(*pair) for pair in pairs])
    return _ends(sums.sum(0), bias, x.dtype)


@sound(operator="linear_gelu", formats=("fp32",))
def reversed_terms(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """The bias first, then products from the last to the first, in fp32."""
    total = bias.float().expand(*x.shape[:-1], weight.shape[0])
    pairs = zip(x.float().split(32, -1), weight.float().split(32, -1), strict=True)
    for left, right in reversed(list(pairs)):
        total = total + functional.linear(left.flip(-1), right.flip(-1))
    return fused_forms.gelu(total.double()).to(x.dtype)


@sound(operator="linear_gelu", formats=("fp32",))
def sums_of_fma(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """Eight sums, each of fused multiply-adds, which round once; then one behind the other."""
    padding = (0, -x.shape[-1] % _LANES)
    left, right = (functional.pad(part.float(), padding) for part in (x, weight))
    steps = zip(left.unsqueeze(-2).split(_LANES, -1), right.split(_LANES, -1), strict=True)
    sums = left.new_zeros(*x.shape[:-1], weight.shape[0], _LANES)
    for a, b in steps:
        sums = (a.double() * b.double() + sums.double()).float()
    total = bias.float()
    for lane in sums.unbind(-1):
        total = total + lane
    return fused_forms.gelu(total.double()).to(x.dtype)


@sound(operator="linear_gelu", formats=("bf16",))
def sums_rounded_before_the_activation(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """The pre-activation is rounded to the format, as eager mode rounds it: two roundings."""
    sums = fused_forms.linear(x, weight) + bias.double()
    return fused_forms.gelu(sums.to(x.dtype).double()).to(x.dtype)


@sound(operator="linear_gelu", formats=("fp32",), arithmetic=Declared(products="tf32"))
def declared_tf32(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """Products of TF32 inputs, as declared."""
    return fused_forms.linear_gelu(fused_forms.tf32(x), fused_forms.tf32(weight), bias)


@sound(
    operator="linear_gelu",
    formats=("fp32",),
    nondeterministic="splits are added in the order in which they come",
)
def declared_order_of_splits(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """Splits are added in any order, as declared."""
    length = max(-(-x.shape[-1] // 8), 1)
    pairs = list(zip(x.float().split(length, -1), weight.float().split(length, -1), strict=True))
    total = bias.float()
    for index in torch.randperm(len(pairs)).tolist():
        total = total + functional.linear(*pairs[index])
    return fused_forms.gelu(total.double()).to(x.dtype)


@sound(operator="linear_gelu", formats=("fp32",))
def another_sum_for_many_rows(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """More than 64 rows are split along K: other bits for the same row, within the bound."""
    if x.shape[:-1].numel() <= 64:
        return _ends(functional.linear(x.float(), weight.float()), bias, x.dtype)
    return four_splits(x, weight, bias)


@sound(operator="bias_gelu", formats=("bf16",))
def sum_rounded_to_the_format(x: Tensor, bias: Tensor) -> Tensor:
    """The sum of x and bias is rounded to the format, then f of it."""
    forms.require_floats(x, bias)
    return fused_forms.gelu((x + bias).double()).to(x.dtype)


class _TwoPasses(torch.autograd.Function):
    """Autograd's own chain goes through the cube of the root, which underflows."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
        row = x.float()
        centred = row - row.mean(-1, keepdim=True)
        root = torch.rsqrt(centred.square().mean(-1, keepdim=True) + fused_forms.EPSILON)
        normed = centred * root
        ctx.save_for_backward(normed, root, weight, bias)
        return fused_forms.scaled_gelu(normed.double(), weight, bias).to(x.dtype)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, dy: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        normed, root, weight, bias = ctx.saved_tensors
        pre = normed.double() * weight.double() + bias.double()
        g = (dy.double() * forms.slope(pre)).float()
        h = g * weight.float()
        along = (h * normed).mean(-1, keepdim=True)
        dx = (h - h.mean(-1, keepdim=True) - normed * along) * root
        dweight, dbias = (part.flatten(0, -2).sum(0).to(dy.dtype) for part in (g * normed, g))
        return dx.to(dy.dtype), dweight, dbias


@sound(operator="layernorm_gelu", formats=("fp32",))
def two_passes(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """Mean, then the mean of squared distances to it, in fp32; the same for the gradient."""
    return _TwoPasses.apply(x, weight, bias)


@sound(operator="layernorm_gelu", formats=("fp32",))
def moments_of_blocks(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """Welford's moments of blocks of 16, merged one by one (Chan), in fp32; no gradient."""
    row = x.detach().float()
    mean = square = row.new_zeros(*row.shape[:-1], 1)
    count = 0
    for part in row.split(16, -1):
        n = part.shape[-1]
        if not n:
            continue
        own = part.mean(-1, keepdim=True)
        apart = own - mean
        mean = mean + apart * (n / (count + n))
        square = square + (part - own).square().sum(-1, keepdim=True)
        square = square + apart.square() * (count * n / (count + n))
        count += n
    root = 1 / (square / max(count, 1) + fused_forms.EPSILON).sqrt()
    normed = ((row - mean) * root * weight.detach() + bias.detach()).double()
    return fused_forms.gelu(normed).to(x.dtype)


@sound(operator="conv_relu_pool", formats=("fp32",))
def product_of_patches(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """One product of matrices with all patches in fp32; the bias after the maxima, ReLU last."""
    patches = functional.unfold(x.float(), 3, padding=1)
    sums = (weight.float().flatten(1) @ patches).unflatten(-1, x.shape[-2:])
    largest = functional.max_pool2d(sums, 2) + bias.float()[:, None, None]
    return functional.relu(largest).to(x.dtype)


@sound(operator="attention", formats=("fp32",))
def online_softmax(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Blocks of 256 keys; sums are rescaled where the maximum rises, divided at the end; exp2."""
    scores = fused_forms.scores(q, k) * math.log2(math.e)
    top = scores.new_full((*scores.shape[:-1], 1), -torch.inf)
    total, out = torch.zeros_like(top), torch.zeros_like(q, dtype=scores.dtype)
    for part, values in zip(scores.split(256, -1), v.split(256, -2), strict=True):
        raised = torch.maximum(top, fused_forms.largest(part))
        # -inf is no distance: nothing has been summed there.
        fade = torch.where(top == -torch.inf, 0.0, (top - raised).exp2())
        weights = (part - raised).exp2()
        total = total * fade + weights.sum(-1, keepdim=True)
        out = out * fade + weights @ values.to(weights.dtype)
        top = raised
    return (out / total).to(q.dtype)


@sound(operator="attention", formats=("bf16",))
def weights_rounded_to_the_format(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Scores and probabilities are rounded to the format, as eager mode rounds them."""
    scores = (q.float() @ k.float().transpose(-2, -1)).to(q.dtype).float()
    scores = (scores / math.sqrt(max(q.shape[-1], 1))).to(q.dtype).float()
    weights = torch.softmax(scores, -1).to(q.dtype).float()
    return (weights @ v.float()).to(q.dtype)
