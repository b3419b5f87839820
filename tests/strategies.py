"""Hypothesis strategies, all in one place."""

from __future__ import annotations

import math
from fractions import Fraction

from hypothesis import strategies as st

from gelu_verify.formats import FORMATS, Format
from gelu_verify.inputs.problems import Problem, recipes
from gelu_verify.inputs.problems.layouts import LAYOUTS
from gelu_verify.inputs.problems.parsing import needed
from gelu_verify.operators.fused import FusedOperator

ALL = tuple(FORMATS)
BELOW_FP64 = tuple(name for name in FORMATS if name != "fp64")
SHORT = tuple(name for name, fmt in FORMATS.items() if fmt.bits <= 16)


def formats(names: tuple[str, ...] = ALL) -> st.SearchStrategy[Format]:
    """Formats by name."""
    return st.sampled_from([FORMATS[name] for name in names])


def patterns(fmt: Format) -> st.SearchStrategy[int]:
    """Bit patterns, NaN and infinity included; borders of binades more often."""
    border = st.integers(0, (1 << (fmt.bits - fmt.precision)) - 1).map(
        lambda field: field << (fmt.precision - 1)
    )
    near = st.tuples(border, st.integers(-2, 2), st.booleans()).map(
        lambda t: (t[0] + t[1]) % fmt.sign_bit | (fmt.sign_bit if t[2] else 0)
    )
    return st.one_of(st.integers(0, (1 << fmt.bits) - 1), near)


def finite_patterns(fmt: Format) -> st.SearchStrategy[int]:
    """Bit patterns of finite values."""
    return patterns(fmt).filter(lambda bits: bits & (fmt.sign_bit - 1) <= fmt.largest_bits)


def finite_values(fmt: Format) -> st.SearchStrategy[float]:
    """Finite values of a format."""
    return finite_patterns(fmt).map(fmt.decode)


@st.composite
def rationals_near_boundaries(draw: st.DrawFn, fmt: Format) -> Fraction:
    """Rationals on, or a hair beside, a value of the format or the middle of two neighbours."""
    magnitude = draw(finite_patterns(fmt)) & (fmt.sign_bit - 1)
    value = Fraction(fmt.decode(magnitude))
    above = Fraction(fmt.decode(min(magnitude + 1, fmt.largest_bits)))
    middle = draw(st.sampled_from([value, (value + above) / 2]))
    beside = draw(st.sampled_from([0, 1, -1])) * Fraction(1, 2 ** draw(st.integers(60, 400)))
    sign = draw(st.sampled_from([1, -1]))
    return sign * middle * (1 + beside)


@st.composite
def float64s_for(draw: st.DrawFn, fmt: Format) -> float:
    """Float64 values that round to a shorter format with difficulty: ties and their neighbours."""
    magnitude = draw(finite_patterns(fmt)) & (fmt.sign_bit - 1)
    value = fmt.decode(magnitude)
    above = fmt.decode(min(magnitude + 1, fmt.largest_bits))
    point = draw(st.sampled_from([value, (value + above) / 2, value * 1.0625, value / 1024]))
    point = draw(
        st.sampled_from([point, math.nextafter(point, math.inf), math.nextafter(point, 0)])
    )
    return math.copysign(point, draw(st.sampled_from([1.0, -1.0])))


def any_float64() -> st.SearchStrategy[float]:
    """All of float64."""
    return st.floats(width=64)


def chunkings(count: int) -> st.SearchStrategy[list[list[int]]]:
    """Ways to cut ``range(count)`` into non-empty chunks, in any order of elements and chunks."""
    cuts = st.lists(st.integers(1, count - 1), unique=True, max_size=8).map(sorted)
    return st.tuples(st.permutations(range(count)), cuts).map(
        lambda t: [t[0][a:b] for a, b in zip([0, *t[1]], [*t[1], count], strict=True)]
    )


#: Simple sizes first: what fails shrinks to them. Empty comes last: it seldom shows anything.
_SIZES = (1, 2, 3, 5, 7, 15, 16, 17, 31, 32, 33, 0)


@st.composite
def problems(draw: st.DrawFn, operator: FusedOperator) -> Problem:
    """Cases of a fused operator, small dimensions and simple recipes and layouts first."""
    required = needed(operator)
    optional = [name for name in operator.dims if name not in required]
    given_too = draw(st.booleans()) if optional else False
    names = operator.dims if given_too else required
    few = st.sampled_from((1, 2, 3))

    def sizes(name: str) -> st.SearchStrategy[int]:
        least = operator.smallest.get(name, 0)
        return st.sampled_from([size for size in _SIZES if size >= least])

    dims = tuple((name, draw(sizes(name) if name in required else few)) for name in names)
    shapes = operator.shapes(dict(dims))
    special = tuple(
        (name, draw(layouts(len(shape))))
        for name, shape in sorted(zip(operator.arguments, shapes, strict=True))
        if draw(st.integers(0, 3)) == 3
    )
    return Problem(
        dims,
        values=draw(st.sampled_from(recipes.names(operator))),
        layout=draw(layouts(max(len(shape) for shape in shapes))),
        seed=draw(st.integers(0, 2**32)),
        special=special,
    )


def layouts(rank: int) -> st.SearchStrategy[str]:
    """Layouts of tensors of a number of dimensions."""
    return st.sampled_from([name for name, layout in LAYOUTS.items() if layout.rank <= rank])


#: Sizes of a fused operator's dimensions: one, primes, below and above powers of two.
SIZES = {
    "b": (1, 2),
    "m": (1, 2, 7),
    "n": (1, 2, 5, 33),
    "k": (1, 2, 31, 33, 64),
    "c": (1, 3),
    "h": (2, 3, 4),
    "w": (2, 5),
    "o": (1, 3),
    "l": (1, 2, 7, 17),
    "d": (1, 4, 8),
}


def fused_dims(names: tuple[str, ...]) -> st.SearchStrategy[dict[str, int]]:
    """Sizes of named dimensions of a fused operator, small enough to emulate."""
    return st.fixed_dictionaries({name: st.sampled_from(SIZES[name]) for name in names})
