"""Replace Linear→GELU, bias+GELU and LayerNorm→GELU in a model by fused operators.

``rewrite(model, inputs)`` traces, matches, replaces and says what it left alone and why.
"""

from .report import Left, Replaced, Report
from .rewrite import rewrite

__all__ = ["Left", "Replaced", "Report", "rewrite"]
