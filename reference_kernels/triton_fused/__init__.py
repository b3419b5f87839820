"""Fused operators in Triton: math on loaded values, thin kernels, host functions.

Each takes ``formula`` last, ``"erf"`` by default; the names with a formula are for the command
line. fp32, bf16 and fp16, any strides and sizes, deterministic, differentiable once.
"""

from functools import partial

from .linear_gelu import linear_gelu
from .rowwise import bias_gelu, geglu

linear_gelu_tanh = partial(linear_gelu, formula="tanh")
linear_gelu_sigmoid = partial(linear_gelu, formula="sigmoid")
bias_gelu_tanh = partial(bias_gelu, formula="tanh")
bias_gelu_sigmoid = partial(bias_gelu, formula="sigmoid")
geglu_tanh = partial(geglu, formula="tanh")
geglu_sigmoid = partial(geglu, formula="sigmoid")

__all__ = [
    "bias_gelu",
    "bias_gelu_sigmoid",
    "bias_gelu_tanh",
    "geglu",
    "geglu_sigmoid",
    "geglu_tanh",
    "linear_gelu",
    "linear_gelu_sigmoid",
    "linear_gelu_tanh",
]
