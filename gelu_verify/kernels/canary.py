"""Canary kernels for Triton's CPU interpreter: so small that a wrong result is the simulator's.

Those in ``REQUIRED`` must be right before any result from the interpreter counts. The others tell
users what not to rely on there; they are wrong in Triton 3.6 to 3.9.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import torch

REQUIRED = (
    "fp32_copy",
    "fp32_arithmetic",
    "fp32_subnormals",
    "nan_comparison",
    "integer_shift",
    "masked_load",
)


@cache
def results() -> dict[str, bool]:
    """Run every canary once in this process and return which are right."""
    from gelu_verify.kernels import canary_kernels as kernels

    x = torch.tensor([1.0, -2.5, 3.1415927, 1e-40, 2.0**-149, 1e30, -0.0, 0.1])
    y = torch.tensor([3.0, 0.3, -7.7, 1e-41, 2.0**-149, 1e-30, 1.0, 0.2])
    bits = torch.tensor([1, -1, 2**31 - 1, -(2**31), 5, 8, 1 << 20, 3], dtype=torch.int32)
    nan = torch.tensor([torch.nan, 1.0, -torch.inf, torch.inf, 0.0, -0.0, torch.nan, 2.0])
    return {
        "fp32_copy": _same(kernels.copy(x), x),
        "fp32_arithmetic": _same(kernels.multiply_add(x, y), (x * y) + y),
        "fp32_subnormals": _same(kernels.multiply_add(x * 1e-38, y), (x * 1e-38 * y) + y),
        "nan_comparison": _same(kernels.keep_if_equal(nan), torch.where(nan == nan, nan, 0.0)),
        "integer_shift": _same(kernels.shift(bits), (bits.long() % 2**32 >> 16).int()),
        "masked_load": _same(kernels.copy(x[:5]), x[:5]),
        "bf16_copy": _same(kernels.copy(x.bfloat16()), x.bfloat16()),
        "bf16_widening": _same(kernels.widen(x.bfloat16()), x.bfloat16().float()),
        "bf16_rounding": _same(kernels.narrow(x), x.bfloat16()),
        "bf16_arithmetic": _same(
            kernels.multiply_add(x.bfloat16(), y.bfloat16()),
            (x.bfloat16() * y.bfloat16()) + y.bfloat16(),
        ),
    }


def _same(actual: Any, expected: torch.Tensor) -> bool:
    """Compare bit for bit; a canary that raises is wrong."""
    if not isinstance(actual, torch.Tensor) or actual.dtype != expected.dtype:
        return False
    carrier = {2: torch.int16, 4: torch.int32}[expected.element_size()]
    return torch.equal(actual.view(carrier), expected.view(carrier))
