"""The one list of recipes, simple ones first, and which of them an operator takes."""

from __future__ import annotations

from gelu_verify.inputs.problems.hard_values import HARD_VALUES
from gelu_verify.inputs.problems.special_values import SPECIAL_VALUES
from gelu_verify.inputs.problems.values import (
    PRODUCTS,
    Recipe,
    cancelling,
    distinct,
    identity,
    indexed,
    ladder,
    normal,
    zero_weight,
)
from gelu_verify.operators.fused import FusedOperator

_WITH_BIAS = ("linear_gelu", "bias_gelu", "layernorm_gelu", "conv_relu_pool")
_WITH_WEIGHT = ("linear_gelu", "layernorm_gelu", "conv_relu_pool")
_NEUTRAL = ("linear_gelu", "bias_gelu", "geglu", "layernorm_gelu", "conv_relu_pool")

RECIPES: dict[str, Recipe] = {
    "normal": Recipe(normal),
    "distinct": Recipe(distinct, _WITH_BIAS),
    "indexed": Recipe(indexed),
    "identity": Recipe(identity, _NEUTRAL),
    "zero_weight": Recipe(zero_weight, _WITH_WEIGHT),
    "cancelling": Recipe(cancelling, tuple(PRODUCTS)),
    "ladder": Recipe(ladder),
    **SPECIAL_VALUES,
    **HARD_VALUES,
}


def names(operator: FusedOperator) -> tuple[str, ...]:
    """Return the names of the recipes that an operator takes."""
    return tuple(
        name
        for name, recipe in RECIPES.items()
        if not recipe.operators or operator.name in recipe.operators
    )
