"""What is computed: one file an operator."""

from gelu_verify.errors import unknown_name
from gelu_verify.operators import fused
from gelu_verify.operators.base import FORMULAS, NEUTRAL, Operator, at_neutral, is_neutral, place
from gelu_verify.operators.bias_gelu import BIAS_GELU
from gelu_verify.operators.geglu import GEGLU
from gelu_verify.operators.gelu import GELU
from gelu_verify.operators.gelu_backward import GELU_BACKWARD

__all__ = [
    "FORMULAS",
    "NEUTRAL",
    "OPERATORS",
    "Operator",
    "arguments",
    "at_neutral",
    "get",
    "is_neutral",
    "names",
    "place",
    "require",
    "require_formula",
]

_ALL: tuple[Operator, ...] = (GELU, GELU_BACKWARD, BIAS_GELU, GEGLU)
OPERATORS: dict[str, Operator] = {op.name: op for op in _ALL}


def get(name: str) -> Operator:
    """Return the operator called ``name``; an unknown one is a usage error naming the nearest."""
    try:
        return OPERATORS[name]
    except KeyError:
        raise unknown_name("operator", name, OPERATORS) from None


def require(name: str) -> str:
    """Return ``name`` if it is an operator, elementwise or fused, else raise a usage error."""
    if name not in names():
        raise unknown_name("operator", name, names())
    return name


def names() -> tuple[str, ...]:
    """Return all operators, elementwise ones first."""
    return tuple(dict.fromkeys((*OPERATORS, *fused.NAMES)))


def arguments(name: str) -> tuple[str, ...]:
    """Return the names of an operator's arguments."""
    return OPERATORS[name].arguments if name in OPERATORS else fused.ARGUMENTS[name]


def require_formula(name: str) -> str:
    """Return ``name`` if it is a formula, else raise a usage error naming the nearest."""
    if name not in FORMULAS:
        hint = "torch's approximate='none' is the erf formula."
        raise unknown_name("formula", name, FORMULAS, hint)
    return name
