"""Layers that a site fills, and the transformer blocks that hold them."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from gelu_verify.convergence.sites import Site
from gelu_verify.convergence.sites.attention import attend


class Activated(nn.Module):
    """A linear layer with its activation: linear_gelu."""

    def __init__(self, inputs: int, outputs: int, site: Site) -> None:
        super().__init__()
        made = nn.Linear(inputs, outputs)
        self.weight, self.bias = made.weight, made.bias
        self.site = site

    def forward(self, x: Tensor) -> Tensor:
        """Return f(x·weightᵀ + bias), (..., outputs)."""
        return self.site(x, self.weight, self.bias)


class Gated(nn.Module):
    """A linear layer, one half of whose outputs gates the other: geglu."""

    def __init__(self, inputs: int, outputs: int, site: Site) -> None:
        super().__init__()
        self.halves = nn.Linear(inputs, 2 * outputs)
        self.site = site

    def forward(self, x: Tensor) -> Tensor:
        """Return f(gate)·up, (..., outputs)."""
        return self.site(*self.halves(x).chunk(2, -1))


class Normed(nn.Module):
    """A linear layer without an activation, then layernorm_gelu."""

    def __init__(self, inputs: int, outputs: int, site: Site) -> None:
        super().__init__()
        self.linear = nn.Linear(inputs, outputs)
        self.weight = nn.Parameter(torch.ones(outputs))
        self.bias = nn.Parameter(torch.zeros(outputs))
        self.site = site

    def forward(self, x: Tensor) -> Tensor:
        """Return f of the normalised outputs, (..., outputs)."""
        return self.site(self.linear(x), self.weight, self.bias)


class Pooled(nn.Module):
    """A 3×3 convolution with what follows it: conv_relu_pool."""

    def __init__(self, inputs: int, outputs: int, site: Site) -> None:
        super().__init__()
        made = nn.Conv2d(inputs, outputs, 3)
        self.weight, self.bias = made.weight, made.bias
        self.site = site

    def forward(self, x: Tensor) -> Tensor:
        """Return (B, outputs, H//2, W//2) for (B, inputs, H, W)."""
        return self.site(x, self.weight, self.bias)


class Causal(nn.Module):
    """Attention in which no position sees a later one, of at most ``length``."""

    mask: Tensor

    def __init__(self, length: int) -> None:
        super().__init__()
        later = torch.ones(length, length, dtype=torch.bool).triu(1)
        self.register_buffer("mask", torch.zeros(length, length).masked_fill(later, -math.inf))

    def forward(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        """Return (..., L, D) for three of them."""
        return attend(q, k, v, self.mask[: q.shape[-2], : q.shape[-2]])


class Mixed(nn.Module):
    """Self-attention over positions: projections, and between them a site or ``Causal``."""

    def __init__(self, width: int, heads: int, attention: Site) -> None:
        super().__init__()
        self.heads, self.attention = heads, attention
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)

    def forward(self, x: Tensor) -> Tensor:
        """Return (B, T, width) for (B, T, width)."""
        qkv = self.qkv(x).unflatten(-1, (3, self.heads, -1))
        q, k, v = qkv.permute(2, 0, 3, 1, 4)
        return self.out(self.attention(q, k, v).transpose(1, 2).flatten(2))


class Block(nn.Module):
    """A pre-norm transformer block: attention, then a layer four times as wide and a linear one."""

    def __init__(self, width: int, attention: nn.Module, wide: nn.Module) -> None:
        super().__init__()
        self.before_attention, self.before_wide = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attention, self.wide = attention, wide
        self.down = nn.Linear(4 * width, width)

    def forward(self, x: Tensor) -> Tensor:
        """Return (B, T, width) for (B, T, width)."""
        x = x + self.attention(self.before_attention(x))
        return x + self.down(self.wide(self.before_wide(x)))


class Learnt(nn.Module):
    """Position embeddings, (length, width), added to (B, length, width)."""

    def __init__(self, length: int, width: int) -> None:
        super().__init__()
        self.table = nn.Parameter(0.02 * torch.randn(length, width))

    def forward(self, x: Tensor) -> Tensor:
        """Return x with its positions marked."""
        return x + self.table[: x.shape[1]]
