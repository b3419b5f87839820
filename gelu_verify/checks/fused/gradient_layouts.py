"""Gradient layouts: a backward reads dy as it comes, with stride 0 from a sum or out of order.

What breaks for a contiguous dy of the same values as well is told by the check ``gradient``.
Autograd itself makes such dy (``y.sum().backward()``, ``y.t()``, ``y[:, ::2]``), so a backward that
refuses one fails.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from gelu_verify.checks.case import Outcome
from gelu_verify.checks.fused.case import FusedCase
from gelu_verify.checks.fused.differentiation import NO_GRADIENT, cotangent, gradients, leaves
from gelu_verify.checks.fused.examine import examine
from gelu_verify.checks.fused.ratios import judged
from gelu_verify.inputs.problems import Problem, ladder
from gelu_verify.kernels.failure import KernelFailure

_SIZES = (1, 33)


def expanded(dy: Tensor) -> Tensor:
    """Return one value everywhere, stride 0: what ``sum`` gives."""
    return torch.full((), 0.75, device=dy.device).to(dy.dtype).expand(dy.shape)


def reversed_dims(dy: Tensor) -> Tensor:
    """Return the same values, the first dimension adjacent in memory."""
    back = tuple(range(dy.dim()))[::-1]
    return dy.permute(back).contiguous().permute(back)


def every_second(dy: Tensor) -> Tensor:
    """Return the same values, two elements apart, NaN between them."""
    pair = torch.stack([dy, torch.full_like(dy, torch.nan)], dim=-1)
    return pair[..., 0]


def row_expanded(dy: Tensor) -> Tensor:
    """Return the first row for all rows, stride 0: what a sum over rows gives."""
    return dy[:1].expand(dy.shape)


def misaligned(dy: Tensor) -> Tensor:
    """Return the same values, one element off the alignment of memory."""
    buffer = torch.full((dy.numel() + 1,), torch.nan, device=dy.device).to(dy.dtype)
    buffer[1:] = dy.reshape(-1)
    return buffer[1:].view(dy.shape)


LAYOUTS: dict[str, Callable[[Tensor], Tensor]] = {
    "expanded, stride 0": expanded,
    "one row expanded": row_expanded,
    "first dimension adjacent": reversed_dims,
    "every second element": every_second,
    "misaligned by one element": misaligned,
}


def run(case: FusedCase) -> Outcome:
    """Judge the gradients for every layout of dy."""
    operator, seed = case.operator, case.job.seed
    own = (*ladder.cubes(operator, _SIZES, seed), ladder.rectangle(operator, seed))
    held = f"within the bound for dy {'; '.join(LAYOUTS)}"
    return examine(case, "gradient_layouts", case.asked_or(own), _faults, held, NO_GRADIENT)


def _faults(case: FusedCase, problem: Problem) -> list[str] | None:
    """Return what a layout breaks that the same values in a contiguous dy do not."""
    found = []
    for name, layout in LAYOUTS.items():
        faults = _given(case, problem, layout)
        if faults is None:
            return None
        plain = (_given(case, problem, _contiguous(layout)) or {}) if faults else {}
        found += [f"dy {name}, {text}" for key, text in faults.items() if key not in plain]
    return found


def _contiguous(layout: Callable[[Tensor], Tensor]) -> Callable[[Tensor], Tensor]:
    return lambda dy: layout(dy).clone(memory_format=torch.contiguous_format)


def _given(
    case: FusedCase, problem: Problem, layout: Callable[[Tensor], Tensor]
) -> dict[str, str] | None:
    """Return what is wrong with each gradient for one layout; None if there is no gradient."""
    inputs = case.inputs(problem)
    arguments = leaves(inputs)
    result = case.call(arguments)
    dy = layout(cotangent(case, problem, result))
    try:
        parts = gradients(result, arguments, dy)
    except KernelFailure as error:
        return {"backward": f"backward: {error}"}
    if parts is None:
        return None
    exact = case.operator.backward(dy, inputs, case.job.formula, case.arithmetic)
    found = {}
    for name, part, right in zip(case.operator.arguments, parts, exact, strict=True):
        if part is None:
            found[name] = f"no gradient reaches {name}"
            continue
        told = judged(part, right, case.subject.fmt, case.contract, str(problem)).told()
        if told:
            found[name] = f"d{name}: {told[1]}"
    return found
