"""Cases for checks of conduct: sizes that climb, not values that hurt."""

from __future__ import annotations

from collections.abc import Sequence

from gelu_verify.inputs.problems.problem import Problem
from gelu_verify.operators.fused import FusedOperator

#: A size each, for the rectangular case: no two dimensions alike, none a multiple of a vector.
_PRIMES = (5, 33, 17, 7, 3, 11)

#: Dimensions that only repeat the work of the others: a few of each show all there is to see.
_REPEATING = {"attention": {"h": 3}, "conv_relu_pool": {"n": 2, "c": 5, "o": 7}}

#: The dimension whose work grows with its square, and values that show a misread element of it.
_SQUARED = {"attention": ("l", "few_keys")}
#: The most of such a dimension of which every element is judged; beyond it, chosen rows are.
_WHOLE = 2**12
_WIDTH = 16


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
    (cube,) = cubes(operator, (short,), seed)
    return tuple(
        resized(cube, name, size) for name in _names(operator) if name != squared(operator)
    )


def long_squared(operator: FusedOperator, size: int, seed: int = 0) -> Problem | None:
    """Return a case with a long dimension of squared work; None without such a dimension.

    One head of one batch (torch's fused kernel wants a batch), of a width that vectors like.
    """
    if operator.name not in _SQUARED:
        return None
    name, values = _SQUARED[operator.name]
    once = ("b", *_REPEATING.get(operator.name, {}))
    dims = ((n, size if n == name else 1 if n in once else _WIDTH) for n in operator.dims)
    return Problem(tuple(dims), values, seed=seed)


def squared(operator: FusedOperator) -> str | None:
    """Return the dimension whose work grows with its square, None if there is none."""
    return _SQUARED.get(operator.name, (None,))[0]


def is_long(operator: FusedOperator, problem: Problem) -> bool:
    """Tell whether a case has more rows, each of them as long, than can be judged in full."""
    return dict(problem.dims).get(str(squared(operator)), 0) > _WHOLE


def resized(problem: Problem, name: str, size: int) -> Problem:
    """Return the case with another size of one dimension."""
    dims = tuple((n, size if n == name else old) for n, old in problem.dims)
    return Problem(dims, problem.values, problem.layout, problem.seed, problem.special)


def _names(operator: FusedOperator) -> tuple[str, ...]:
    """Return the dimensions that every case has: all but a batch."""
    return tuple(name for name in operator.dims if name != "b")
