"""Which cases a check of a fused operator runs: a fixed list, the same in every run.

Not the product of everything, but, at the depth ``standard``:

- cases that earlier checks stored, first;
- every size of :mod:`.shapes`, in turn with values of all kinds, and a few with a batch;
- every recipe of values with two sizes and two layouts that keep all values;
- every layout for all arguments together, and for each argument alone, values that show a misread
  element.

``quick`` has a few sizes, every recipe and every layout once, a batch and an empty case. Each case
has a seed of its own.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import cycle, islice

from gelu_verify.inputs.problems import recipes, shapes, stored
from gelu_verify.inputs.problems.layouts import LAYOUTS, REPEATING
from gelu_verify.inputs.problems.parsing import needed
from gelu_verify.inputs.problems.problem import Problem
from gelu_verify.inputs.problems.shapes import Sizes
from gelu_verify.operators.fused import FusedOperator

#: Values that show a misread element, by layout in turn.
_TELLING = ("indexed", "distinct", "normal")
#: Of a batch, and of heads where there are any.
_BATCHES = ((3, 2), (2, 1), (1, 3), (5, 2))
_QUICK = 4


def cases(operator: FusedOperator, depth: str, seed: int = 0) -> tuple[Problem, ...]:
    """Return the cases of a depth (quick; standard and any deeper one)."""
    listed = _quick(operator) if depth == "quick" else _standard(operator)
    unique = dict.fromkeys(listed)
    numbered = (replace(problem, seed=seed + index) for index, problem in enumerate(unique))
    return tuple(dict.fromkeys((*stored.problems(operator), *numbered)))


def _standard(operator: FusedOperator) -> Iterator[Problem]:
    values = cycle(_taken(operator, ("normal", "indexed", "cancelling")))
    for sizes in shapes.of(operator):
        yield Problem(_dims(operator, sizes), next(values))
    yield from _batched(operator)
    keeping = (name for name in _layouts(operator) if name not in REPEATING)
    places, small = cycle(keeping), cycle(shapes.small(operator))
    for name in recipes.names(operator):
        for _ in range(2):
            yield Problem(_dims(operator, next(small)), name, next(places))
    yield from _laid_out(operator)


def _quick(operator: FusedOperator) -> Iterator[Problem]:
    listed = shapes.of(operator)
    for sizes in listed[:: max(len(listed) // _QUICK, 1)]:
        yield Problem(_dims(operator, sizes))
    names, layouts = recipes.names(operator), _layouts(operator)
    count = max(len(names), len(layouts))
    turns = zip(cycle(names), cycle(layouts), cycle(shapes.small(operator)), range(count))
    for name, layout, sizes, _ in turns:
        yield Problem(_dims(operator, sizes), name, layout)
    yield from islice(_batched(operator), 1)
    yield from islice((Problem(_dims(operator, sizes)) for sizes in listed if 0 in sizes), 1)


def _batched(operator: FusedOperator) -> Iterator[Problem]:
    leading = [name for name in operator.dims if name not in needed(operator)]
    if not leading:
        return
    layouts = ("contiguous", "permuted", "transposed", "sliced")
    sizes = shapes.small(operator)
    for layout, more, others in zip(layouts, _BATCHES, cycle(sizes), strict=False):
        batch = tuple(zip(leading, more, strict=False))
        for values in _taken(operator, ("indexed", "normal")):
            yield Problem((*batch, *_dims(operator, others)), values, layout)


def _laid_out(operator: FusedOperator) -> Iterator[Problem]:
    values = cycle(_taken(operator, _TELLING))
    small = cycle(shapes.small(operator))
    for layout in _layouts(operator):
        yield Problem(_dims(operator, next(small)), next(values), layout)
    for index, argument in enumerate(operator.arguments):
        dims = _dims(operator, shapes.small(operator)[0])
        rank = len(operator.shapes(dict(dims))[index])
        for layout in _layouts(operator, rank)[1:]:
            dims = _dims(operator, next(small))
            yield Problem(dims, next(values), special=((argument, layout),))


def _taken(operator: FusedOperator, wanted: tuple[str, ...]) -> tuple[str, ...]:
    """Return those recipes of a few that the operator takes."""
    return tuple(name for name in wanted if name in recipes.names(operator))


def _layouts(operator: FusedOperator, rank: int | None = None) -> tuple[str, ...]:
    """Return the layouts of tensors of at most ``rank`` dimensions; None for the operator's."""
    if rank is None:
        dims = dict(_dims(operator, shapes.small(operator)[0]))
        rank = max(len(shape) for shape in operator.shapes(dims))
    return tuple(name for name, layout in LAYOUTS.items() if layout.rank <= rank)


def _dims(operator: FusedOperator, sizes: Sizes) -> tuple[tuple[str, int], ...]:
    """Return sizes with the names of the dimensions that a case must name."""
    return tuple(zip(needed(operator), sizes, strict=True))
