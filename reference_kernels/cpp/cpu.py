"""The operators on a CPU; importing this builds and loads them.

``gelu_erf(x)`` and ``gelu_erf_backward(dy, x)`` compute in float64 and round to the format at the
end: fp64, fp32, bf16, fp16, any strides; the result has the memory order of ``torch.empty_like``.

``linear_gelu(x, weight, bias)``: x (..., K), weight (N, K), bias (N,), in fp32, bf16 or fp16. Tiles
of x·weightᵀ are summed in fp32 and finished (bias, GELU, one rounding) while they are in the cache.
The backward computes the pre-activation again instead of saving it: a third of its products more
against (M, N) numbers less of memory, and nothing that was rounded.
"""

from __future__ import annotations

import torch

from . import build

build.load("cpu.cpp")

from . import registration  # noqa: E402, F401  (it registers what has just been loaded)

gelu_erf = torch.ops.gelu_verify_kernels.gelu_erf
gelu_erf_backward = torch.ops.gelu_verify_kernels.gelu_erf_backward
linear_gelu = torch.ops.gelu_verify_kernels.linear_gelu
