"""Fused operators: sums and activations in one kernel, judged by a bound derived per element.

Only their names and arguments are here: an operator loads torch when it is asked for.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module

from gelu_verify.operators.fused.base import FusedOperator, Multiplies, Undefined

__all__ = ["ARGUMENTS", "NAMES", "FusedOperator", "Multiplies", "Undefined", "get"]

#: One module each, of the same name, and the arguments of its function.
ARGUMENTS: dict[str, tuple[str, ...]] = {
    "linear_gelu": ("x", "weight", "bias"),
    "bias_gelu": ("x", "bias"),
    "geglu": ("gate", "up"),
    "layernorm_gelu": ("x", "weight", "bias"),
    "conv_relu_pool": ("x", "weight", "bias"),
    "attention": ("q", "k", "v"),
}
NAMES = tuple(ARGUMENTS)


@cache
def get(name: str) -> FusedOperator:
    """Return the operator called ``name``, one of ``NAMES``."""
    operator: FusedOperator = import_module(f"{__name__}.{name}").OPERATOR
    return operator
