"""A fused kernel with cases of its list, as the pipeline makes them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cache
from typing import Any

import torch
from torch import Tensor

from gelu_verify import contracts, formats
from gelu_verify.bounds import Bounded
from gelu_verify.checks.fused import FusedCase
from gelu_verify.checks.fused.ratios import judged
from gelu_verify.inputs.problems import Problem, profile
from gelu_verify.kernels.subject import Callee
from tests import cases as plain


def fused_case(
    function: Callable[..., Any],
    operator: str = "linear_gelu",
    name: str = "bf16",
    texts: Iterable[str] = (),
    depth: str = "standard",
) -> FusedCase:
    task = plain.job(name, operator=operator, depth=depth, cases=tuple(texts))
    return FusedCase(task, Callee("f", "erf", formats.get(name), torch.device("cpu"), function))


@cache
def _exact(operator: str, name: str) -> list[tuple[Problem, tuple[Tensor, ...], Bounded]]:
    """Return every case of the standard list with its inputs and exact values, worked out once."""
    case = fused_case(lambda *_: None, operator, name)
    problems = profile.cases(case.operator, "standard")
    inputs = [case.inputs(problem) for problem in problems]
    exact = [case.operator.forward(part, "erf", case.arithmetic) for part in inputs]
    return list(zip(problems, inputs, exact, strict=True))


def catching(
    function: Callable[..., Tensor], operator: str = "linear_gelu", name: str = "bf16"
) -> list[Problem]:
    """Return the cases of the standard list in which the bound is broken."""
    fmt, contract = formats.get(name), contracts.get("cancelling")
    return [
        problem
        for problem, inputs, exact in _exact(operator, name)
        if judged(function(*inputs), exact, fmt, contract, str(problem)).broken
    ]
