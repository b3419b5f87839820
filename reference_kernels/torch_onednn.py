"""oneDNN's fused linear layer on the CPU, the one that torch's compiler puts into frozen models."""

from __future__ import annotations

import torch
from torch import Tensor

from gelu_verify.errors import UnavailableError

if not (torch.backends.mkldnn.is_available() and hasattr(torch.ops.mkldnn, "_linear_pointwise")):
    raise UnavailableError("oneDNN: got a torch without it, expected one built with oneDNN.")


def linear_gelu(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """Return oneDNN's linear layer with its GELU, the erf formula; without gradient."""
    return _linear(x, weight, bias, "none")


def linear_gelu_tanh(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """Return oneDNN's linear layer with its GELU, the tanh formula; without gradient."""
    return _linear(x, weight, bias, "tanh")


def _linear(x: Tensor, weight: Tensor, bias: Tensor, approximate: str) -> Tensor:
    if x.numel() == 0 or weight.numel() == 0:
        raise ValueError("oneDNN: got an empty argument, expected at least one element in each.")
    with torch.no_grad():
        # It reads a strided bias as if that were contiguous (the check `bound` showed it).
        return torch.ops.mkldnn._linear_pointwise(
            x, weight, bias.contiguous(), "gelu", [], approximate
        )
