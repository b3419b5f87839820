"""Cases for checks of conduct: sizes that climb, not values that hurt."""

from __future__ import annotations

from collections.abc import Sequence

from gelu_verify.inputs.problems.problem import Problem
from gelu_verify.operators.fused import FusedOperator

#: A size each, for the rectangular case: no two dimensions alike, none a multiple of a vector.
_PRIMES = (5, 33, 17, 7, 3, 11)

#: Dimensions that only repeat the work of the others: a few of each show all there is to see.
_REPEATING = {"attention": {"h": 3}, "conv_relu_pool": {"n": 2, "c": 5, "o": 7}}

#: Dimensions whose work grows with their square: the longest that is tried, one head alone.
_SQUARED = {"attention": {"l": 2**11 + 1}}
_BESIDE_SQUARED = {"attention": "h"}


def cubes(operator: FusedOperator, sizes: Sequence[int], seed: int = 0) -> tuple[Problem, ...]:
    """Return one case a size, every dimension of that size, within what it can have."""
    least, most = operator.smallest, _REPEATING.get(operator.name, {})
    return tuple(
        Problem(
            tuple(
                (n, max(min(size, most.get(n, size)), least.get(n, 0))) for n in _names(operator)
            ),
            seed=seed,
        )
        for size in sizes
    )


def rectangle(operator: FusedOperator, seed: int = 0) -> Problem:
    """Return a case no two dimensions of which are alike."""
    sizes = zip(_names(operator), _PRIMES, strict=False)
    return Problem(tuple(sizes), seed=seed)


def long(operator: FusedOperator, size: int, short: int, seed: int = 0) -> tuple[Problem, ...]:
    """Return one case a dimension: that one long, the others short."""
    (base,) = cubes(operator, (short,), seed)
    most = _SQUARED.get(operator.name, {})
    found = []
    for name in _names(operator):
        one = resized(base, name, min(size, most.get(name, size)))
        found.append(resized(one, _BESIDE_SQUARED[operator.name], 1) if name in most else one)
    return tuple(found)


def squares(operator: FusedOperator) -> bool:
    """Tell whether the work of an operator grows with the square of a dimension."""
    return operator.name in _SQUARED


def resized(problem: Problem, name: str, size: int) -> Problem:
    """Return the case with another size of one dimension."""
    dims = tuple((n, size if n == name else old) for n, old in problem.dims)
    return Problem(dims, problem.values, problem.layout, problem.seed, problem.special)


def _names(operator: FusedOperator) -> tuple[str, ...]:
    """Return the dimensions that every case has: all but a batch."""
    return tuple(name for name in operator.dims if name != "b")
