"""Fused operators: sums and activations in one kernel, judged by a bound derived per element.

Only their names are here: an operator loads torch when it is asked for.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module

from gelu_verify.operators.fused.base import FusedOperator

__all__ = ["NAMES", "FusedOperator", "get"]

#: One module each, of the same name.
NAMES = ("linear_gelu",)


@cache
def get(name: str) -> FusedOperator:
    """Return the operator called ``name``, one of ``NAMES``."""
    operator: FusedOperator = import_module(f"{__name__}.{name}").OPERATOR
    return operator
