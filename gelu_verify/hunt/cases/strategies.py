"""Hypothesis strategies of cases, plain numbers and names, so that it can climb in each of them."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import strategies as st

from gelu_verify.hunt.cases.space import LARGEST_SEED, LONGEST, Space
from gelu_verify.inputs.problems import Problem

_SHORT = 33


def problems(space: Space, swept: str) -> st.SearchStrategy[Problem]:
    """Return cases with any size of one dimension, short ones of the others."""
    sizes = {name: st.integers(0, LONGEST if name == swept else _SHORT) for name in space.needed}
    leading = {name: st.integers(1, 3) for name in space.leading}
    given = st.fixed_dictionaries(sizes)
    if leading:
        given = given | st.fixed_dictionaries({**leading, **sizes})
    plain = st.builds(
        Problem,
        given.map(lambda chosen: space.fitting(chosen, swept)),
        values=st.sampled_from(space.values),
        seed=st.integers(0, LARGEST_SEED),
    )
    return plain.flatmap(
        lambda problem: st.sampled_from(space.layouts(problem)).map(
            lambda layout: replace(problem, layout=layout)
        )
    )
