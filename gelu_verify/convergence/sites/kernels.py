"""How a kernel is called at a site: its dtype, its gradient, and what it must return."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from gelu_verify.convergence.sites.autocast import lifted
from gelu_verify.kernels.failure import failure
from gelu_verify.kernels.subject import require_like
from gelu_verify.operators.fused import FusedOperator

Activation = Callable[[Tensor], Tensor]
Kernel = Callable[..., Any]


class _WithBackward(torch.autograd.Function):
    """One function forward, a kernel ``(dy, x)`` backward."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, function: Activation, kernel: Kernel) -> Tensor:
        ctx.save_for_backward(x)
        ctx.kernel = kernel
        return function(x)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None, None]:
        (x,) = ctx.saved_tensors
        dy = gradients[0].contiguous()
        return called(ctx.kernel, (dy, x), x.shape, x.dtype), None, None


def with_backward(forward: Activation, kernel: Kernel) -> Activation:
    """Return an activation whose gradient is a kernel's, ``(dy, x)``."""
    return lambda x: _WithBackward.apply(x, forward, kernel)


def activation(function: Kernel) -> Activation:
    """Return the activation that a kernel of x is."""
    return lambda x: called(function, (x,), x.shape, x.dtype)


def whole(operator: FusedOperator, function: Kernel) -> Callable[..., Tensor]:
    """Return the site that a kernel of all of an operator is, its arguments in one dtype."""

    def site(*arguments: Tensor) -> Tensor:
        shape = operator.output_shape(tuple(tuple(part.shape) for part in arguments))
        with lifted(arguments) as given:
            return called(function, given, torch.Size(shape), given[0].dtype)

    return site


def called(
    function: Kernel, arguments: tuple[Tensor, ...], shape: torch.Size, dtype: torch.dtype
) -> Tensor:
    """Return a kernel's result. Raises KernelFailure where it is none, or of another shape."""
    try:
        result = function(*arguments)
    except Exception as error:
        raise failure(error) from error
    require_like(result, shape, dtype, arguments[0].device)
    return result
