"""What stands at the activations of a model: the exact formula, torch's own, or the kernel.

A site is ``(x, weight, bias) -> f(x·weightᵀ + bias)``, x (..., K), weight (N, K), bias (N,): the
widest fused operator that a task's model has room for, so that every narrower one fits in it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from gelu_verify.convergence import exact as formulas
from gelu_verify.errors import UsageError
from gelu_verify.formats import Format, tensors
from gelu_verify.kernels.failure import failure
from gelu_verify.kernels.subject import require_like

Site = Callable[[Tensor, Tensor, Tensor], Tensor]
Activation = Callable[[Tensor], Tensor]

#: Operators of which a kernel can stand at a site.
OPERATORS = ("gelu", "gelu_backward", "bias_gelu", "linear_gelu")


class _WithBackward(torch.autograd.Function):
    """One function forward, a kernel ``(dy, x)`` backward."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, function: Activation, kernel: Callable[..., Any]) -> Tensor:
        ctx.save_for_backward(x)
        ctx.kernel = kernel
        return function(x)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None, None]:
        (x,) = ctx.saved_tensors
        dy = gradients[0].contiguous()
        return _called(ctx.kernel, (dy, x), x.shape, x.dtype), None, None


def exact(formula: str) -> Site:
    """Return the formula, computed in float64 and rounded once to what the product has."""
    return at_activation(lambda x: formulas.gelu(x, formula))


def eager(formula: str) -> Activation:
    """Return torch's own activation, or the sigmoid form as frameworks write it."""
    if formula == "sigmoid":
        return lambda x: x * torch.sigmoid(1.702 * x)
    return lambda x: functional.gelu(x, approximate="tanh" if formula == "tanh" else "none")


def noisy(formula: str, fmt: Format, generator: torch.Generator) -> Site:
    """Return torch's activation times 1 ± 2^(1−p), p the precision of the format, signs at random.

    That is one ULP where the result is just above a power of two, two just below.
    """
    own, size = eager(formula), 2.0 ** (1 - fmt.precision)

    def activation(x: Tensor) -> Tensor:
        drawn = torch.rand(x.shape, generator=generator, device=generator.device)
        y: Tensor = own(x)
        return y * torch.where(drawn < 0.5, 1 - size, 1 + size).to(y.dtype)

    return at_activation(activation)


def at_activation(activation: Activation) -> Site:
    """Return the site that a function of x·weightᵀ + bias makes with torch's product."""
    return lambda x, weight, bias: activation(functional.linear(x, weight, bias))


def of_kernel(
    operator: str, formula: str, function: Callable[..., Any], backward: Callable[..., Any] | None
) -> Site:
    """Return the site with the kernel in it.

    backward: ``(dy, x)``, for a ``gelu`` kernel without one of its own.
    A kernel that raises, or gives no result of the shape and dtype of x, raises KernelFailure.
    """
    if operator == "gelu_backward":
        own = eager(formula)
        return at_activation(lambda x: _WithBackward.apply(x, own, function))
    if operator == "gelu":
        if backward is not None:
            forward = lambda x: _called(function, (x,), x.shape, x.dtype)  # noqa: E731
            return at_activation(lambda x: _WithBackward.apply(x, forward, backward))
        return at_activation(lambda x: _called(function, (x,), x.shape, x.dtype))
    if operator == "bias_gelu":

        def with_bias(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
            product = functional.linear(x, weight)
            return _called(
                function, (product, bias.to(product.dtype)), product.shape, product.dtype
            )

        return with_bias
    return _of_linear(function)


def _of_linear(function: Callable[..., Any]) -> Site:
    def linear(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
        device = x.device.type
        wanted = torch.get_autocast_dtype(device) if torch.is_autocast_enabled(device) else x.dtype
        rows = x.reshape(-1, x.shape[-1])
        arguments = tuple(part.to(wanted) for part in (rows, weight, bias))
        with torch.autocast(device, enabled=False):
            y = _called(function, arguments, torch.Size((len(rows), len(weight))), wanted)
        return y.reshape(*x.shape[:-1], len(weight))

    return linear


def _called(
    function: Callable[..., Any], arguments: tuple[Tensor, ...], shape: torch.Size, dtype: Any
) -> Tensor:
    try:
        result = function(*arguments)
    except Exception as error:
        raise failure(error) from error
    require_like(result, shape, dtype, arguments[0].device)
    return result


def require_trainable(site: Site, fmt: Format, device: torch.device, name: str) -> None:
    """Raise a usage error unless a gradient comes back through a site."""
    dtype = tensors.dtype(fmt)
    x = torch.ones(2, 4, dtype=dtype, device=device, requires_grad=True)
    weight = torch.ones(4, 4, dtype=dtype, device=device)
    y = site(x, weight, torch.zeros(4, dtype=dtype, device=device))
    if y.grad_fn is None:
        raise UsageError(
            f"kernel {name}: got a result without a gradient, expected one to train with. "
            "Name the kernel of its gradient with --backward."
        )
