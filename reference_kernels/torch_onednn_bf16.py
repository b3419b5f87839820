"""oneDNN's fused linear layer in bf16, where the CPU has the instructions that it asks for."""

from __future__ import annotations

import torch

from gelu_verify.errors import UnavailableError

from .torch_onednn import linear_gelu, linear_gelu_tanh

__all__ = ["linear_gelu", "linear_gelu_tanh"]

if not torch.ops.mkldnn._is_mkldnn_bf16_supported():
    raise UnavailableError(
        "oneDNN in bf16: got a CPU without AVX-512 or AVX-NE-CONVERT, expected one that has it."
    )
