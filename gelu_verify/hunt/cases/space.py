"""The cases that a hunt may draw: every size up to some hundreds, recipe and layout there is.

Sizes of one dimension come from a shuffled deck that holds each small size once and larger ones at
random, while the others stay small: a fault at one residue of a length, or above a size, comes up
after some hundred cases, whichever dimension it is in.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from random import Random

from gelu_verify.inputs.problems import Problem, ladder, recipes
from gelu_verify.inputs.problems.layouts import LAYOUTS
from gelu_verify.inputs.problems.parsing import needed
from gelu_verify.inputs.problems.shapes import EDGES
from gelu_verify.operators.fused import FusedOperator

#: Every size up to this comes up once before any comes up again; larger ones are drawn beside them.
_EVERY = 192
LONGEST = 4096
_LONGER = 64
#: Products of one case: some milliseconds.
_WORK = 2**21
_TAPS = {"conv_relu_pool": 9}
_SMALL = tuple(size for size in EDGES if size <= 33)
LARGEST_SEED = 2**31
#: Shares of the cases with a batch, with one layout for all, and with one for one argument.
_BATCHED, _LAID_OUT, _APART = 0.15, 0.4, 0.2
_PLAIN = 0.5

Dims = tuple[tuple[str, int], ...]


class Space:
    """The cases of one operator; every choice is that of the generator it is given."""

    def __init__(self, operator: FusedOperator) -> None:
        self.operator = operator
        self.needed = needed(operator)
        self.leading = tuple(name for name in operator.dims if name not in self.needed)
        self.values = recipes.names(operator)
        self._decks: dict[str, list[int]] = {name: [] for name in self.needed}

    def drawn(self, random: Random, swept: str) -> Problem:
        """Return a case with the next size of one dimension, all else at random."""
        sizes = {name: random.choice(_SMALL) for name in self.needed}
        sizes[swept] = self._next(random, swept)
        if random.random() < _BATCHED:
            sizes |= {name: random.randint(1, 3) for name in self.leading}
        values = "normal" if random.random() < _PLAIN else random.choice(self.values)
        problem = Problem(self.fitting(sizes, swept), values, seed=random.randrange(LARGEST_SEED))
        return self._laid_out(problem, random)

    def changed(self, problem: Problem, random: Random) -> Problem:
        """Return a neighbour: another size of one dimension, other values, layout or seed."""
        changes: tuple[Callable[[Problem, Random], Problem], ...] = (
            self._resized,
            self._resized,
            self._revalued,
            self._reseeded,
            self._laid_out,
        )
        return random.choice(changes)(problem, random)

    def fitting(self, sizes: Mapping[str, int], kept: str | None = None) -> Dims:
        """Return dimensions in order, halved until they are no more work than a case may have.

        kept: the one that is halved last.
        """
        least = self.operator.smallest
        found = {n: max(sizes[n], least.get(n, 0)) for n in self.operator.dims if n in sizes}
        while self.work(found) > _WORK:
            others = {n: size for n, size in found.items() if n != kept and size > 4}
            widest = max(others or found, key=lambda name: found[name])
            found[widest] = max(found[widest] // 2, least.get(widest, 1))
        return tuple(found.items())

    def work(self, sizes: Mapping[str, int]) -> int:
        """Return the products of a case, about."""
        again = sizes.get(str(ladder.squared(self.operator)), 1) * _TAPS.get(self.operator.name, 1)
        return math.prod(sizes.values()) * again

    def layouts(self, problem: Problem, argument: str | None = None) -> tuple[str, ...]:
        """Return the layouts of an argument, or of the operator's: those of enough dimensions."""
        shapes = self.operator.shapes(dict(problem.dims))
        ranks = {n: len(shape) for n, shape in zip(self.operator.arguments, shapes, strict=True)}
        rank = max(ranks.values()) if argument is None else ranks[argument]
        return tuple(name for name, layout in LAYOUTS.items() if layout.rank <= rank)

    def _next(self, random: Random, name: str) -> int:
        deck = self._decks[name]
        if not deck:
            longer = [round(_EVERY * 2 ** (random.random() * math.log2(LONGEST / _EVERY)))
                      for _ in range(_LONGER)]  # fmt: skip
            deck += [*range(_EVERY + 1), *longer]
            random.shuffle(deck)
        return deck.pop()

    def _laid_out(self, problem: Problem, random: Random) -> Problem:
        one = random.random()
        if one < _LAID_OUT:
            layout = random.choice(self.layouts(problem))
            return replace(problem, layout=layout, special=())
        if one < _LAID_OUT + _APART:
            argument = random.choice(self.operator.arguments)
            layout = random.choice(self.layouts(problem, argument))
            return replace(problem, special=((argument, layout),))
        return replace(problem, layout="contiguous", special=())

    def _resized(self, problem: Problem, random: Random) -> Problem:
        sizes = dict(problem.dims)
        name = random.choice(list(sizes))
        old = sizes[name]
        near = old + random.choice((-1, 1)) * random.choice((1, 1, 2, 8, 16))
        sizes[name] = min(max(random.choice((near, old * 2, old // 2)), 0), LONGEST)
        return replace(problem, dims=self.fitting(sizes, name))

    def _revalued(self, problem: Problem, random: Random) -> Problem:
        return replace(problem, values=random.choice(self.values))

    def _reseeded(self, problem: Problem, random: Random) -> Problem:
        return replace(problem, seed=random.randrange(LARGEST_SEED))
