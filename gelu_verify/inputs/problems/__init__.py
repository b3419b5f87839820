"""Inputs of fused operators: shapes, values and layouts, each named, so that a case is one line."""

from gelu_verify.inputs.problems.parsing import parse
from gelu_verify.inputs.problems.problem import Problem

__all__ = ["Problem", "parse"]
