"""The fused operators through ``torch.compile``: compiled when they are first called.

Sizes are dynamic and not assumed equal to each other, so that one graph serves most shapes; sizes
of 0 and 1, other layouts and the need of a gradient still compile again, 5 to 20 s each on a CPU.
``fullgraph``: where compiling gives up, an error says so, instead of eager mode in its place.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from functools import cache
from typing import Any

import torch
from torch import Tensor

from gelu_verify.errors import UnavailableError

from . import torch_eager, torch_fused

#: Graphs of one function; torch's own limit of 8 is for models.
_GRAPHS = 256

if shutil.which(os.environ.get("CXX", "g++")) is None:
    raise UnavailableError(
        f"torch.compile: got no C++ compiler ({os.environ.get('CXX', 'g++')}), expected one on "
        "PATH. Install g++, or name another in CXX."
    )


def linear_gelu(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """Return compiled ``gelu(linear(x, weight, bias))``."""
    return _call(torch_fused.linear_gelu, x, weight, bias)


def linear_gelu_tanh(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """Return compiled ``gelu(linear(x, weight, bias), approximate="tanh")``."""
    return _call(torch_fused.linear_gelu_tanh, x, weight, bias)


def bias_gelu(x: Tensor, bias: Tensor) -> Tensor:
    """Return compiled ``gelu(x + bias)``."""
    return _call(torch_eager.bias_gelu, x, bias)


def geglu(gate: Tensor, up: Tensor) -> Tensor:
    """Return compiled ``gelu(gate)·up``."""
    return _call(torch_eager.geglu, gate, up)


def layernorm_gelu(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """Return compiled ``gelu(layer_norm(x))``."""
    return _call(torch_fused.layernorm_gelu, x, weight, bias)


def conv_relu_pool(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """Return compiled ``max_pool2d(relu(conv2d(x)), 2)``."""
    return _call(torch_fused.conv_relu_pool, x, weight, bias)


def attention(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Return compiled ``softmax(q·kᵀ/√d)·v``."""
    return _call(torch_fused.attention, q, k, v)


def _call(function: Callable[..., Tensor], *arguments: Tensor) -> Tensor:
    import torch._dynamo
    from torch.fx.experimental import _config

    of_shapes: Any = _config
    limits = torch._dynamo.config.patch(
        recompile_limit=_GRAPHS, accumulated_recompile_limit=_GRAPHS
    )
    with limits, of_shapes.patch(use_duck_shape=False):
        return _compiled(function)(*arguments)


@cache
def _compiled(function: Callable[..., Tensor]) -> Callable[..., Tensor]:
    return torch.compile(function, dynamic=True, fullgraph=True)
