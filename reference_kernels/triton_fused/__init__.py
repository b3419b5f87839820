"""Fused operators in Triton: math on loaded values, thin kernels, host functions.

Those with a GELU take ``formula`` last, ``"erf"`` by default; the names with a formula are for the
command line. fp32, bf16 and fp16, any strides and sizes, deterministic, differentiable once.
"""

from functools import partial

from .attention import attention
from .conv_relu_pool import conv_relu_pool
from .layernorm_gelu import layernorm_gelu
from .linear_gelu import linear_gelu
from .rowwise import bias_gelu, geglu
from .warmup import warmup

linear_gelu_tanh = partial(linear_gelu, formula="tanh")
linear_gelu_sigmoid = partial(linear_gelu, formula="sigmoid")
bias_gelu_tanh = partial(bias_gelu, formula="tanh")
bias_gelu_sigmoid = partial(bias_gelu, formula="sigmoid")
geglu_tanh = partial(geglu, formula="tanh")
geglu_sigmoid = partial(geglu, formula="sigmoid")
layernorm_gelu_tanh = partial(layernorm_gelu, formula="tanh")
layernorm_gelu_sigmoid = partial(layernorm_gelu, formula="sigmoid")

__all__ = [
    "attention",
    "bias_gelu",
    "bias_gelu_sigmoid",
    "bias_gelu_tanh",
    "conv_relu_pool",
    "geglu",
    "geglu_sigmoid",
    "geglu_tanh",
    "layernorm_gelu",
    "layernorm_gelu_sigmoid",
    "layernorm_gelu_tanh",
    "linear_gelu",
    "linear_gelu_sigmoid",
    "linear_gelu_tanh",
    "warmup",
]
