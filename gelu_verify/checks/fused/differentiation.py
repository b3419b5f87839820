"""A fused kernel under autograd: its result on leaves, and the gradient for each of them."""

from __future__ import annotations

import torch
from torch import Tensor

from gelu_verify.checks.fused.case import FusedCase
from gelu_verify.formats import tensors
from gelu_verify.inputs.problems import Problem
from gelu_verify.kernels import activity
from gelu_verify.kernels.failure import ResultFault, failure
from gelu_verify.kernels.subject import wait_for

Gradients = tuple[Tensor | None, ...]

NO_GRADIENT = "the kernel has no gradient"
#: What ``torch.compile`` says where it reuses what it saved, and so goes backward only once.
ONCE_COMPILED = "donated buffer"
#: What torch says, when it goes backward, of a registered operator without a gradient.
_NOT_OFFERED = ("no autograd formula was registered", "derivative for aten::")


def leaves(inputs: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
    """Return the same memory as arguments that want a gradient."""
    return tuple(part.detach().requires_grad_() for part in inputs)


def cotangent(case: FusedCase, problem: Problem, result: Tensor) -> Tensor:
    """Return dy: unit normals of the case's seed, rounded once to the format."""
    generator = torch.Generator().manual_seed(problem.seed + 1)
    dy = torch.randn(result.shape, generator=generator, dtype=torch.float64)
    return tensors.round_float64(dy, case.subject.fmt).to(result.device)


def gradients(
    result: Tensor, arguments: tuple[Tensor, ...], dy: Tensor, retain: bool = False
) -> Gradients | None:
    """Return the gradient for each argument, its shape checked; None where none reaches.

    None for all if the kernel offers no gradient. retain: whether the graph can be gone through
    again. Raises ``KernelFailure``.
    """
    if result.grad_fn is None:
        return None
    try:
        with activity.of_kernel():
            parts = torch.autograd.grad(
                result, arguments, dy, retain_graph=retain, allow_unused=True
            )
            wait_for(result.device)
    except (Exception, SystemExit) as error:
        if isinstance(error, RuntimeError) and any(text in str(error) for text in _NOT_OFFERED):
            return None
        raise failure(error) from error
    for leaf, part in zip(arguments, parts, strict=True):
        if part is not None and part.shape != leaf.shape:
            raise ResultFault(
                f"gradient: got shape {tuple(part.shape)}, expected {tuple(leaf.shape)}. "
                "A gradient has the shape of its argument."
            )
    return parts
