"""torch's own GELU in eager mode, and the sigmoid form as frameworks write it."""

from __future__ import annotations

import torch


def gelu(x: torch.Tensor) -> torch.Tensor:
    """Return ``torch.nn.functional.gelu(x)``: the erf formula."""
    return torch.nn.functional.gelu(x)


def gelu_tanh(x: torch.Tensor) -> torch.Tensor:
    """Return ``torch.nn.functional.gelu(x, approximate="tanh")``."""
    return torch.nn.functional.gelu(x, approximate="tanh")


def gelu_sigmoid(x: torch.Tensor) -> torch.Tensor:
    """Return ``x·sigmoid(1.702x)``, as OpenAI's CLIP and GPT-2 code writes QuickGELU."""
    return x * torch.sigmoid(1.702 * x)


def bias_gelu(x: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
    """Return ``torch.nn.functional.gelu(x + bias)``, x (..., N), bias (N,)."""
    return torch.nn.functional.gelu(x + bias)


def geglu(gate: torch.Tensor, up: torch.Tensor) -> torch.Tensor:
    """Return ``torch.nn.functional.gelu(gate) * up``."""
    return torch.nn.functional.gelu(gate) * up
