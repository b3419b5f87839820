"""Fused operators in Triton: math on loaded values, thin kernels, host functions.

Each takes ``formula`` last, ``"erf"`` by default; the names with a formula are for the command
line. fp32, bf16 and fp16, any strides and sizes, deterministic, differentiable once.
"""

from functools import partial

from .linear_gelu import linear_gelu
from .rowwise import bias_gelu, geglu

linear_gelu_tanh = partial(linear_gelu, formula="tanh")
linear_gelu_sigmoid = partial(linear_gelu, formula="sigmoid")

__all__ = ["bias_gelu", "geglu", "linear_gelu", "linear_gelu_sigmoid", "linear_gelu_tanh"]
