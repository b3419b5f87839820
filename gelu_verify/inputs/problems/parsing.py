"""From a line to a :class:`Problem`; what is not understood is one clear sentence."""

from __future__ import annotations

from collections.abc import Mapping
from math import prod

from gelu_verify.errors import UsageError, unknown_name
from gelu_verify.inputs.problems import recipes
from gelu_verify.inputs.problems.layouts import LAYOUTS
from gelu_verify.inputs.problems.problem import Problem
from gelu_verify.operators.fused import FusedOperator

_LARGEST_SEED = 2**63 - 2  # a check uses seed + 1 too
#: Elements of one argument: twice what a 32-bit index reaches, unsigned.
_LARGEST = 2**33


def parse(text: str, operator: FusedOperator) -> Problem:
    """Return the case that a line describes, of which ``str`` gives the line again.

    Raises :class:`UsageError` for a name, a size or a value that the operator does not take.
    """
    given = _fields(text, operator)
    problem = Problem(
        dims=_dims(given, operator),
        values=given.get("values", "normal"),
        layout=given.get("layout", "contiguous"),
        seed=_number("seed", given.get("seed", "0"), _LARGEST_SEED),
        special=tuple(
            sorted((n.partition(".")[2], v) for n, v in given.items() if n.startswith("layout."))
        ),
    )
    taken = recipes.names(operator)
    if problem.values not in taken:
        raise unknown_name(f"values of {operator.name}", problem.values, taken)
    _require_layouts(problem, operator)
    return problem


def needed(operator: FusedOperator) -> tuple[str, ...]:
    """Return the dimensions without which an operator has no shapes: all but batches, heads."""
    return tuple(name for name in operator.dims if not _has_shapes_without(operator, name))


def _has_shapes_without(operator: FusedOperator, name: str) -> bool:
    try:
        operator.shapes({other: 1 for other in operator.dims if other != name})
    except KeyError:
        return False
    return True


def _fields(text: str, operator: FusedOperator) -> dict[str, str]:
    """Return name to value, every name known and given once."""
    of_arguments = (f"layout.{name}" for name in operator.arguments)
    known = (*operator.dims, "values", "layout", *of_arguments, "seed")
    given: dict[str, str] = {}
    for part in text.split(","):
        name, equals, value = (piece.strip() for piece in part.partition("="))
        if not equals:
            raise UsageError(
                f"case: got {part!r}, expected name=value. Example: {_example(operator)}"
            )
        if name not in known:
            raise unknown_name(f"case of {operator.name}", name, known, _example(operator))
        if name in given:
            raise UsageError(f"case: got {name} twice, expected it once. Drop one.")
        given[name] = value
    return given


def _dims(given: Mapping[str, str], operator: FusedOperator) -> tuple[tuple[str, int], ...]:
    required = needed(operator)
    for name in required:
        if name not in given:
            raise UsageError(
                f"case: got no {name}, expected {', '.join(required)}. "
                f"Example: {_example(operator)}"
            )
    dims = tuple((n, _number(n, given[n], _LARGEST)) for n in operator.dims if n in given)
    for name, shape in zip(operator.arguments, operator.shapes(dict(dims)), strict=True):
        if prod(shape) > _LARGEST:
            raise UsageError(
                f"case: got {name} of shape {shape}, expected at most 2^33 elements. "
                "Make a dimension smaller."
            )
    return dims


def _require_layouts(problem: Problem, operator: FusedOperator) -> None:
    """Raise for a layout that is none, or that needs more dimensions than it is given."""
    shapes = dict(zip(operator.arguments, operator.shapes(dict(problem.dims)), strict=True))
    deepest = max(len(shape) for shape in shapes.values())
    wanted = [("layout", problem.layout, deepest)]
    wanted += [(f"layout.{n}", layout, len(shapes[n])) for n, layout in problem.special]
    for what, layout, rank in wanted:
        if layout not in LAYOUTS:
            raise unknown_name(what, layout, LAYOUTS)
        if LAYOUTS[layout].rank > rank:
            fitting = ", ".join(name for name, one in LAYOUTS.items() if one.rank <= rank)
            raise UsageError(
                f"{what}: got {layout}, expected one for at most {rank} dimensions: {fitting}."
            )


def _number(name: str, text: str, largest: int) -> int:
    # More digits than the largest has would take long to read.
    if not (text.isascii() and text.isdecimal() and len(text) < 25 and int(text) <= largest):
        raise UsageError(
            f"case: got {name}={text[:40]}, expected a whole number from 0 to {largest}. "
            f"Example: {name}=64"
        )
    return int(text)


def _example(operator: FusedOperator) -> str:
    return ",".join(f"{name}=16" for name in needed(operator))
