"""torch's own routes to the fused operators, in eager mode."""

from __future__ import annotations

import math

import torch
from torch import Tensor
from torch.nn import functional


def linear_gelu(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """Return ``gelu(linear(x, weight, bias))``: two kernels."""
    return functional.gelu(functional.linear(x, weight, bias))


def linear_gelu_tanh(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """Return ``gelu(linear(x, weight, bias), approximate="tanh")``: two kernels."""
    return functional.gelu(functional.linear(x, weight, bias), approximate="tanh")


def linear_gelu_epilogue(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """Return ``torch._addmm_activation(..., use_gelu=True)``: one kernel on CUDA.

    It computes the erf formula on a CPU and the tanh formula on CUDA. torch has no derivative of
    it, so none is claimed.
    """
    with torch.no_grad():
        rows = x.reshape(x.shape[:-1].numel(), x.shape[-1])
        result = torch._addmm_activation(bias, rows, weight.t(), use_gelu=True)
    return result.reshape(*x.shape[:-1], weight.shape[0])


def layernorm_gelu(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """Return ``gelu(layer_norm(x))`` over the last dimension: two kernels."""
    return functional.gelu(functional.layer_norm(x, x.shape[-1:], weight, bias, 1e-5))


def conv_relu_pool(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """Return ``max_pool2d(relu(conv2d(x)), 2)``, 3×3 with padding 1: three kernels."""
    return functional.max_pool2d(functional.relu(functional.conv2d(x, weight, bias, padding=1)), 2)


def attention(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Return ``softmax(q·kᵀ/√d)·v`` as it is written."""
    scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
    return torch.softmax(scores, -1) @ v


def attention_fused(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Return ``torch.nn.functional.scaled_dot_product_attention``: torch chooses the kernel."""
    return functional.scaled_dot_product_attention(q, k, v)
