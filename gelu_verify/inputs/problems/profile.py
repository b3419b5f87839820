"""Which cases a check of a fused operator runs: a fixed list, the same in every run."""

from __future__ import annotations

from gelu_verify.inputs.problems.problem import Problem
from gelu_verify.operators.fused import FusedOperator


def cases(operator: FusedOperator, depth: str, seed: int = 0) -> tuple[Problem, ...]:
    """Return the cases of a depth (quick, standard)."""
    sizes = (1, 33, 64) if depth == "quick" else (1, 17, 32, 33, 64, 65)
    return tuple(
        Problem(tuple((name, size) for name in operator.dims if name != "b"), seed=seed + index)
        for index, size in enumerate(sizes)
    )
