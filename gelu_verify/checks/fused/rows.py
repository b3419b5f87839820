"""Independent rows of a fused operator: their dimension in each tensor, parts of it."""

from __future__ import annotations

from torch import Tensor

from gelu_verify.checks.fused.case import FusedCase
from gelu_verify.inputs.problems import Problem, ladder
from gelu_verify.operators.fused import FusedOperator
from gelu_verify.operators.fused.base import Shape

NO_ROWS = "the operator has no dimension of independent rows"


def axes(operator: FusedOperator, problem: Problem) -> tuple[tuple[int | None, ...], int]:
    """Return the axis of the rows in each argument (None: common to all), and in the result."""
    assert operator.rows is not None
    here, there = _shapes(operator, problem, operator.rows)
    result = _changed(operator.output_shape(here), operator.output_shape(there))
    assert result is not None, "rows that no result has"
    return places(operator, problem, operator.rows), result


def places(operator: FusedOperator, problem: Problem, name: str) -> tuple[int | None, ...]:
    """Return the axis of a dimension in each argument, None where an argument lacks it."""
    here, there = _shapes(operator, problem, name)
    return tuple(_changed(a, b) for a, b in zip(here, there, strict=True))


def part(
    inputs: tuple[Tensor, ...], places: tuple[int | None, ...], start: int, count: int
) -> tuple[Tensor, ...]:
    """Return the arguments of some rows alone, each in memory of its own."""
    return tuple(
        given if axis is None else given.narrow(axis, start, count).contiguous().clone()
        for given, axis in zip(inputs, places, strict=True)
    )


def problem_of(case: FusedCase, rows: int, elements: int, widest: int) -> Problem | None:
    """Return a case of so many rows with at most so many products in all; None without rows.

    widest: limit of every other dimension.
    """
    operator = case.operator
    if operator.rows is None:
        return None
    (unit,) = ladder.cubes(operator, (1,), case.job.seed)
    others = max(len(unit.dims) - 1, 1)
    size = min(max(int((elements / rows) ** (1 / others)), 1), widest)
    names = {name for name, _ in unit.dims}
    dims = tuple((n, rows if n == operator.rows else size) for n, _ in unit.dims)
    if operator.rows not in names:
        dims = ((operator.rows, rows), *dims)
    return Problem(dims, seed=case.job.seed)


def _shapes(operator: FusedOperator, problem: Problem, name: str) -> list[tuple[Shape, ...]]:
    """Return the shapes of the arguments, and those with one more of a dimension."""
    more = ladder.resized(problem, name, dict(problem.dims)[name] + 1)
    return [operator.shapes(dict(p.dims)) for p in (problem, more)]


def _changed(here: Shape, there: Shape) -> int | None:
    return next((i for i, (a, b) in enumerate(zip(here, there, strict=True)) if a != b), None)
