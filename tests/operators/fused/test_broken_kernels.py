"""A kernel that breaks its promise is beyond the bound, and the fault is the only difference."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from gelu_verify.checks.fused.ratios import Ratios, judged
from gelu_verify.formats import FORMATS, tensors
from gelu_verify.operators import fused
from gelu_verify.reference import fast
from tests.operators.fused import emulated
from tests.operators.fused.samples import arithmetic, in_format, inputs, upstream

LINEAR = {"m": 8, "k": 512, "n": 16}
Kernel = Callable[..., Tensor]


def forward(name: str, fmt: str, parts: tuple[Tensor, ...], actual: Tensor) -> Ratios:
    bound = arithmetic(fmt)
    exact = fused.get(name).forward(parts, "erf", bound)
    stored = in_format(actual.double(), FORMATS[fmt])
    return judged(stored, exact, FORMATS[fmt], bound.contract, name)


def gradient(
    name: str, fmt: str, dy: Tensor, parts: tuple[Tensor, ...], argument: str, actual: Tensor
) -> Ratios:
    bound, operator = arithmetic(fmt), fused.get(name)
    exact = operator.backward(dy, parts, "erf", bound)[operator.arguments.index(argument)]
    stored = in_format(actual.double(), FORMATS[fmt])
    return judged(stored, exact, FORMATS[fmt], bound.contract, name)


def linear(fmt: str) -> tuple[Tensor, ...]:
    x, weight, bias = inputs("linear_gelu", LINEAR, FORMATS[fmt], seed=1)
    return x, in_format(weight.double() / math.sqrt(LINEAR["k"]), FORMATS[fmt]), bias


def gelu(s: Tensor, formula: str = "erf") -> Tensor:
    return fast.gelu(s.double().contiguous(), formula)


def test_the_sound_kernel_that_the_faults_are_put_into_holds() -> None:
    for fmt in ("fp32", "bf16"):
        parts = linear(fmt)
        x, weight, bias = (part.float() for part in parts)
        assert forward("linear_gelu", fmt, parts, gelu(x @ weight.t() + bias)).broken == 0


def _tf32(part: Tensor) -> Tensor:
    return part.float().view(torch.int32).bitwise_and(-(1 << 13)).view(torch.float32)


def test_tf32_products_break_the_bound_of_fp32() -> None:
    parts = linear("fp32")
    x, weight, bias = parts
    found = forward("linear_gelu", "fp32", parts, gelu(_tf32(x) @ _tf32(weight).t() + bias))
    assert found.broken
    assert found.max_ratio > 2


def test_partial_sums_in_bf16_break_the_bound() -> None:
    parts = linear("bf16")
    x, weight, bias = (part.float() for part in parts)
    total = torch.zeros(x.shape[0], weight.shape[0])
    for start in range(0, LINEAR["k"], 32):
        cut = slice(start, start + 32)
        total = (total + x[:, cut] @ weight[:, cut].t()).bfloat16().float()
    assert forward("linear_gelu", "bf16", parts, gelu(total + bias)).broken


def test_an_activation_on_partial_sums_breaks_the_bound() -> None:
    parts = linear("bf16")
    x, weight, bias = (part.float() for part in parts)
    halves = [slice(0, 256), slice(256, 512)]
    wrong = sum(gelu(x[:, cut] @ weight[:, cut].t() + bias / 2) for cut in halves)
    assert isinstance(wrong, Tensor)
    assert forward("linear_gelu", "bf16", parts, wrong).broken > 50


@pytest.mark.parametrize("fmt", ["fp32", "fp16"])
def test_tanh_for_erf_breaks_the_bound(fmt: str) -> None:
    parts = inputs("bias_gelu", {"m": 16, "n": 64}, FORMATS[fmt], seed=2)
    x, bias = (part.float() for part in parts)
    assert forward("bias_gelu", fmt, parts, gelu(x + bias)).broken == 0
    assert forward("bias_gelu", fmt, parts, gelu(x + bias, "tanh")).broken


def test_a_missing_bias_breaks_the_bound() -> None:
    parts = inputs("bias_gelu", {"m": 4, "n": 8}, FORMATS["bf16"])
    assert forward("bias_gelu", "bf16", parts, gelu(parts[0])).broken > 16


def test_swapped_halves_break_the_bound() -> None:
    parts = inputs("geglu", {"m": 4, "n": 8}, FORMATS["bf16"])
    gate, up = (part.double() for part in parts)
    assert forward("geglu", "bf16", parts, gelu(gate) * up).broken == 0
    assert forward("geglu", "bf16", parts, gelu(up) * gate).broken > 16


def _layernorm(parts: tuple[Tensor, ...], variance: Kernel) -> Tensor:
    x, weight, bias = (part.float() for part in parts)
    mean = x.mean(-1, keepdim=True)
    return gelu((x - mean) / torch.sqrt(variance(x) + 1e-5) * weight + bias)


def test_the_unbiased_variance_breaks_the_bound() -> None:
    parts = inputs("layernorm_gelu", {"m": 8, "n": 64}, FORMATS["bf16"])
    biased = _layernorm(parts, lambda x: x.var(-1, keepdim=True, unbiased=False))
    unbiased = _layernorm(parts, lambda x: x.var(-1, keepdim=True))
    assert forward("layernorm_gelu", "bf16", parts, biased).broken == 0
    assert forward("layernorm_gelu", "bf16", parts, unbiased).broken


def _one_pass(x: Tensor) -> Tensor:
    mean = x.mean(-1, keepdim=True)
    return ((x * x).mean(-1, keepdim=True) - mean * mean).clamp(min=0)


def test_one_pass_breaks_the_bound_on_rows_with_a_large_mean() -> None:
    plain = inputs("layernorm_gelu", {"m": 8, "n": 64}, FORMATS["fp32"])
    assert forward("layernorm_gelu", "fp32", plain, _layernorm(plain, _one_pass)).broken == 0
    parts = (plain[0] + 3000.0, *plain[1:])
    two = _layernorm(parts, lambda x: x.var(-1, keepdim=True, unbiased=False))
    assert forward("layernorm_gelu", "fp32", parts, two).broken == 0
    assert forward("layernorm_gelu", "fp32", parts, _layernorm(parts, _one_pass)).broken > 50


def test_a_softmax_that_is_not_shifted_breaks_the_bound() -> None:
    q, k, v = inputs("attention", {"h": 1, "l": 8, "d": 4}, FORMATS["fp32"])
    parts = (q * 20, k * 20, v)
    scores = (parts[0] @ parts[1].transpose(-2, -1)) * 0.5
    shifted = (scores - scores.amax(-1, keepdim=True)).exp()
    plain = scores.exp()
    sound = (shifted / shifted.sum(-1, keepdim=True)) @ v
    wrong = (plain / plain.sum(-1, keepdim=True)) @ v
    assert forward("attention", "fp32", parts, sound).broken == 0
    assert forward("attention", "fp32", parts, wrong).broken


def test_an_unscaled_score_breaks_the_bound() -> None:
    parts = inputs("attention", {"h": 1, "l": 8, "d": 4}, FORMATS["bf16"])
    q, k, v = (part.float() for part in parts)
    scores = q @ k.transpose(-2, -1)
    assert forward("attention", "bf16", parts, torch.softmax(scores / 2, -1) @ v).broken == 0
    assert forward("attention", "bf16", parts, torch.softmax(scores, -1) @ v).broken


def test_a_convolution_of_a_moved_image_breaks_the_bound() -> None:
    parts = inputs("conv_relu_pool", {"n": 1, "c": 3, "h": 6, "w": 6, "o": 2}, FORMATS["bf16"])
    x, weight, bias = (part.float() for part in parts)
    turned = emulated.forward(
        "conv_relu_pool", emulated.Machine(FORMATS["fp32"]), (x, weight, bias)
    )
    assert forward("conv_relu_pool", "bf16", parts, turned).broken == 0
    wrapped = torch.cat((x[..., -1:], x[..., :-1]), -1)
    moved = emulated.forward(
        "conv_relu_pool", emulated.Machine(FORMATS["fp32"]), (wrapped, weight, bias)
    )
    assert forward("conv_relu_pool", "bf16", parts, moved).broken


@pytest.mark.parametrize("fmt", ["fp32", "bf16"])
def test_wrong_gradients_break_the_bound(fmt: str) -> None:
    parts = inputs("bias_gelu", {"m": 16, "n": 8}, FORMATS[fmt], seed=4)
    x, bias = (part.double() for part in parts)
    dy = upstream((16, 8), FORMATS[fmt])
    s, grad = (x + bias).contiguous(), dy.double()
    right = grad * fast.derivative(s, "erf")
    assert gradient("bias_gelu", fmt, dy, parts, "x", right).broken == 0
    assert gradient("bias_gelu", fmt, dy, parts, "bias", right.sum(0)).broken == 0
    cdf_alone = grad * 0.5 * torch.special.erfc(-s * math.sqrt(0.5))
    assert gradient("bias_gelu", fmt, dy, parts, "x", cdf_alone).broken > 50
    other_formula = grad * fast.derivative(s, "tanh")
    assert gradient("bias_gelu", fmt, dy, parts, "x", other_formula).broken
    assert gradient("bias_gelu", fmt, dy, parts, "bias", right[-1]).broken == 8


def test_a_layernorm_gradient_without_its_projections_breaks_the_bound() -> None:
    parts = inputs("layernorm_gelu", {"m": 8, "n": 16}, FORMATS["bf16"], seed=5)
    dy = upstream((8, 16), FORMATS["bf16"])
    x, weight, bias = (part.double() for part in parts)
    mean, variance = x.mean(-1, keepdim=True), x.var(-1, keepdim=True, unbiased=False)
    normed, root = (x - mean) / (variance + 1e-5).sqrt(), 1 / (variance + 1e-5).sqrt()
    g = dy.double() * fast.derivative((normed * weight + bias).contiguous(), "erf")
    h = g * weight
    whole = h - h.mean(-1, keepdim=True) - normed * (h * normed).mean(-1, keepdim=True)
    assert gradient("layernorm_gelu", "bf16", dy, parts, "x", whole * root).broken == 0
    assert gradient("layernorm_gelu", "bf16", dy, parts, "x", h * root).broken > 16


def test_a_maximum_that_sends_its_gradient_everywhere_breaks_the_bound() -> None:
    parts = inputs("conv_relu_pool", {"n": 1, "c": 2, "h": 4, "w": 4, "o": 3}, FORMATS["fp32"])
    leaves = tuple(part.double().requires_grad_() for part in parts)
    sums = torch.nn.functional.conv2d(*leaves, padding=1).relu()
    dy = upstream((1, 3, 2, 2), FORMATS["fp32"])
    for pool, broken in ((torch.nn.functional.max_pool2d, False), (_spread, True)):
        (dx,) = torch.autograd.grad(pool(sums, 2), leaves[0], dy.double(), retain_graph=True)
        assert bool(gradient("conv_relu_pool", "fp32", dy, parts, "x", dx).broken) is broken


def _spread(part: Tensor, size: int) -> Tensor:
    return torch.nn.functional.avg_pool2d(part, size) * size * size


def test_a_tie_may_go_either_way() -> None:
    # Equal sums in a window: which is the largest is not certain, and any pick holds.
    x = torch.ones(1, 1, 2, 2)
    weight = torch.zeros(1, 1, 3, 3)
    weight[0, 0, 1, 1] = 1.0
    parts = (x, weight, torch.zeros(1))
    dy = torch.ones(1, 1, 1, 1)
    for place in range(4):
        dx = torch.zeros(4)
        dx[place] = 1.0
        found = gradient("conv_relu_pool", "fp32", dy, parts, "x", dx.reshape(1, 1, 2, 2))
        assert found.broken == 0
    tripled = torch.full((1, 1, 2, 2), 3.0)
    assert gradient("conv_relu_pool", "fp32", dy, parts, "x", tripled).broken == 4


def test_overflow_on_the_way_is_no_fault_and_garbage_after_it_no_evidence() -> None:
    big = tensors.from_patterns([0x7F7FFFFF], FORMATS["fp32"])  # the largest finite value
    parts = (torch.cat((big, -big)).reshape(1, 2), torch.full((1, 2), 2.0), torch.zeros(1))
    found = forward("linear_gelu", "fp32", parts, torch.full((1, 1), torch.nan))
    assert (found.elements, found.open, found.broken) == (0, 1, 0)
