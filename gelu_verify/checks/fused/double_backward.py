"""Double backward: where a gradient can be differentiated again, the second derivative is right.

A hand-written backward that is not marked as differentiable once gives second derivatives without
complaint, with all that it computed out of autograd's sight taken for constants.

The truth is ``H·w = (G(θ + h·w) - G(θ - h·w))/2h`` with the exact gradient G of <dy, f(θ)> in
float64, for the arguments θ, and likewise ``f'·w`` for dy (H is symmetric). Its own error is at
most twice what changes with half of h. Where G jumps between the points (a maximum picks another
argument there), the quotient is the jump over h and no derivative: such elements, whose quotient
changes by far more than a smooth function's would, are left out.

There is no derived bound of a second derivative, so it is judged by norms of the elements left:
``‖got - H·w‖ <= 4ρ·‖H·w‖``, where ρ is the relative bound ``‖slack‖/‖G‖`` of the gradient, the
largest over the arguments. A second derivative has about twice the steps of a gradient, each as
exact as the gradient's; a lost term is an error of the order of ``‖H·w‖``.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from gelu_verify import formats
from gelu_verify.bounds import Arithmetic
from gelu_verify.checks.case import Outcome
from gelu_verify.checks.fused.case import FusedCase
from gelu_verify.checks.fused.differentiation import ONCE_COMPILED, cotangent, leaves
from gelu_verify.checks.fused.examine import examine
from gelu_verify.formats import tensors
from gelu_verify.inputs.problems import Problem, ladder
from gelu_verify.kernels import activity
from gelu_verify.kernels.failure import failure
from gelu_verify.kernels.subject import wait_for
from gelu_verify.report.numbers import figure

_SIZES = (4, 17)
#: Small, so that few maxima change their pick; what float64 loses by it is 2^-31 of the gradient.
_STEP = 2.0**-22
#: A quotient that changes by more than this times the gradient is that of a jump: of 2^-38 or more.
_JUMP = 2.0**-18
_STEPS_MORE = 4.0
_ABSENT = "the kernel's gradient cannot be differentiated"
#: What torch says of a gradient that offers no second derivative.
_NOT_OFFERED = (
    "once_differentiable",
    "derivative for aten::",
    "no autograd formula",
    "does not currently support double backward",
    ONCE_COMPILED,
)


def run(case: FusedCase) -> Outcome:
    """Compare second derivatives at small sizes."""
    own = ladder.cubes(case.operator, _SIZES, case.job.seed)
    problems = [problem for problem in case.asked_or(own) if _can_be_judged(case, problem)]
    held = f"second derivatives within {_STEPS_MORE:.0f} times the relative bound of the gradient"
    return examine(case, "double_backward", problems, _faults, held, _ABSENT)


def _can_be_judged(case: FusedCase, problem: Problem) -> bool:
    """Tell whether a gradient has elements, all finite and bounded: no special value, no overflow.

    What a second derivative makes of others no contract says. It multiplies inputs by each other:
    their squares must not overflow either.
    """
    inputs = case.inputs(problem)
    largest = case.subject.fmt.largest
    if not all(bool((part.double().square() <= largest).all()) for part in inputs):
        return False
    shape = case.operator.output_shape(tuple(tuple(part.shape) for part in inputs))
    dy = cotangent(case, problem, torch.empty(shape, device=case.subject.device))
    if not dy.numel():
        return False
    right = case.operator.backward(dy, inputs, case.job.formula, case.arithmetic)
    return all(bool(torch.isfinite(part.value.abs() + part.total).all()) for part in right)


def _faults(case: FusedCase, problem: Problem) -> list[str] | None:
    inputs = case.inputs(problem)
    arguments = leaves(inputs)
    result = case.call(arguments)
    dy = cotangent(case, problem, result).requires_grad_()
    directions = _directions(case, problem, inputs)
    got = _second(result, (*arguments, dy), directions)
    if got is None:
        return None
    allowed = _STEPS_MORE * _relative_bound(case, dy, inputs)
    found = []
    names = (*case.operator.arguments, "dy")
    for name, part, exact in zip(names, got, _exact(case, dy, inputs, directions), strict=True):
        error = float((part.double() - exact.value)[exact.smooth].norm())
        size = float(exact.value[exact.smooth].norm())
        if not (error <= allowed * size + float(exact.own[exact.smooth].norm())):
            found.append(
                f"second derivative for {name}: off by {figure(error / size if size else error)} "
                f"of its norm, expected at most {figure(allowed)}"
            )
    return found


def _directions(case: FusedCase, problem: Problem, inputs: tuple[Tensor, ...]) -> list[Tensor]:
    """Return w: unit normals of the shapes of the arguments, in the format."""
    generator = torch.Generator().manual_seed(problem.seed + 2)
    fmt = case.subject.fmt
    found = []
    for part in inputs:
        w = torch.randn(part.shape, generator=generator, dtype=torch.float64)
        found.append(tensors.round_float64(w, fmt).to(part.device))
    return found


def _second(
    result: Tensor, arguments: tuple[Tensor, ...], directions: list[Tensor]
) -> list[Tensor] | None:
    """Return H·w for each argument, and f'·w for dy, the last; None where it is not offered."""
    if result.grad_fn is None:
        return None
    *leaf, dy = arguments
    try:
        with activity.of_kernel():
            first = torch.autograd.grad(result, leaf, dy, create_graph=True, allow_unused=True)
            pairs = [
                (g, w)
                for g, w in zip(first, directions, strict=True)
                if g is not None and g.requires_grad
            ]
            if not pairs:
                return None
            outputs, weights = zip(*pairs, strict=True)
            second = torch.autograd.grad(outputs, arguments, weights, allow_unused=True)
            wait_for(result.device)
    except (Exception, SystemExit) as error:
        if any(text in str(error) for text in _NOT_OFFERED):
            return None
        raise failure(error) from error
    if all(part is None for part in second):
        return None  # marked as differentiable once: the gradient leads nowhere
    return [
        torch.zeros_like(argument) if part is None else part.detach()
        for argument, part in zip(arguments, second, strict=True)
    ]


def _relative_bound(case: FusedCase, dy: Tensor, inputs: tuple[Tensor, ...]) -> float:
    """Return ρ, the largest ``‖slack‖/‖G‖`` over the arguments."""
    right = case.operator.backward(dy.detach(), inputs, case.job.formula, case.arithmetic)
    ratios = [float(part.total.norm() / part.value.norm()) for part in right if part.value.any()]
    return max(ratios, default=0.0)


@dataclass(frozen=True)
class _Product:
    """One part of H·w, or f'·w: values, how far each may be off, and which are no jumps."""

    value: Tensor
    own: Tensor
    smooth: Tensor


def _exact(
    case: FusedCase, dy: Tensor, inputs: tuple[Tensor, ...], directions: list[Tensor]
) -> list[_Product]:
    """Return H·w for each argument, and f'·w."""
    coarse, _ = _quotients(case, dy, inputs, directions, 2 * _STEP)
    fine, sizes = _quotients(case, dy, inputs, directions, _STEP)
    found = []
    for wide, near, size in zip(coarse, fine, sizes, strict=True):
        changed = (wide - near).abs()
        # NaN is no jump, and fails.
        found.append(_Product(near, 2 * changed, ~(changed > _JUMP * size)))
    return found


def _quotients(
    case: FusedCase, dy: Tensor, inputs: tuple[Tensor, ...], directions: list[Tensor], step: float
) -> tuple[list[Tensor], list[float]]:
    """Return the quotients, and the largest element of what each is a difference of."""
    arithmetic = Arithmetic.of(formats.get("fp64"), case.contract)
    wide, formula = dy.detach().double(), case.job.formula

    def at(sign: float) -> list[Tensor]:
        moved = tuple(
            part.double() + sign * step * w.double()
            for part, w in zip(inputs, directions, strict=True)
        )
        parts = case.operator.backward(wide, moved, formula, arithmetic)
        return [*(g.value for g in parts), case.operator.forward(moved, formula, arithmetic).value]

    ahead, behind = at(1.0), at(-1.0)
    quotients = [(a - b) / (2 * step) for a, b in zip(ahead, behind, strict=True)]
    return quotients, [float(part.abs().max()) if part.numel() else 0.0 for part in ahead]
