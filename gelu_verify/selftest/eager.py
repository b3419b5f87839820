"""What a usual test compares with: torch's own operations on unit normals."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn import functional

#: Sizes of unit normals as tests have them: whole tiles, widths that are multiples of a vector.
_SHAPES: dict[str, tuple[tuple[int, ...], ...]] = {
    "gelu": ((128, 1024),),
    "gelu_backward": ((128, 1024), (128, 1024)),
    "bias_gelu": ((128, 1024), (1024,)),
    "geglu": ((128, 1024), (128, 1024)),
    "linear_gelu": ((128, 256), (256, 256), (256,)),
    "layernorm_gelu": ((128, 1024), (1024,), (1024,)),
    "conv_relu_pool": ((2, 16, 32, 32), (16, 16, 3, 3), (16,)),
    "attention": ((2, 4, 64, 64),) * 3,
}


def inputs(operator: str, dtype: torch.dtype, device: str, seed: int = 0) -> tuple[Tensor, ...]:
    """Return unit normals for every argument of an operator, in its usual shapes."""
    generator = torch.Generator().manual_seed(seed)
    drawn = (torch.randn(shape, generator=generator) for shape in _SHAPES[operator])
    return tuple(part.to(device=device, dtype=dtype) for part in drawn)


def function(operator: str, formula: str) -> Callable[..., Tensor]:
    """Return torch's own operations for an operator; in float64 they are a test's exact values."""

    def f(x: Tensor) -> Tensor:
        if formula == "sigmoid":
            return x * torch.sigmoid(1.702 * x)
        return functional.gelu(x, approximate="none" if formula == "erf" else "tanh")

    def backward(dy: Tensor, x: Tensor) -> Tensor:
        leaf = x.detach().requires_grad_()
        return torch.autograd.grad(f(leaf), leaf, dy)[0]

    functions: dict[str, Callable[..., Tensor]] = {
        "gelu": f,
        "gelu_backward": backward,
        "bias_gelu": lambda x, bias: f(x + bias),
        "geglu": lambda gate, up: f(gate) * up,
        "linear_gelu": lambda x, weight, bias: f(functional.linear(x, weight, bias)),
        "layernorm_gelu": lambda x, weight, bias: f(
            functional.layer_norm(x, x.shape[-1:], weight, bias, 1e-5)
        ),
        "conv_relu_pool": lambda x, weight, bias: functional.max_pool2d(
            functional.relu(functional.conv2d(x, weight, bias, padding=1)), 2
        ),
        "attention": functional.scaled_dot_product_attention,
    }
    return functions[operator]
