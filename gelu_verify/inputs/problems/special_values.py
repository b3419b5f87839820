"""Recipes with one special value in one place: all others are normal, and must stay right."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

from torch import Tensor

from gelu_verify.formats import Format
from gelu_verify.inputs.problems.values import Draft, Recipe

_VALUES: dict[str, Callable[[Format], float]] = {
    "one_nan": lambda _: math.nan,
    "one_inf": lambda _: math.inf,
    "one_minus_inf": lambda _: -math.inf,
    "one_minus_zero": lambda _: -0.0,
    "one_subnormal": lambda fmt: 3 * fmt.smallest_subnormal,
    "one_largest": lambda fmt: fmt.largest,
}


def _placed(value: Callable[[Format], float]) -> Callable[[Draft], Mapping[str, Tensor]]:
    def make(draft: Draft) -> Mapping[str, Tensor]:
        filled = [name for name, part in draft.parts.items() if part.numel()]
        if not filled:
            return {}
        name = filled[draft.pick(len(filled))]
        part = draft.parts[name].clone()
        part.view(-1)[draft.pick(part.numel())] = value(draft.fmt)
        return {name: part}

    return make


SPECIAL_VALUES = {name: Recipe(_placed(value)) for name, value in _VALUES.items()}
