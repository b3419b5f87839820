"""A rewritten model against the original and against the truth, outputs and gradients.

Three questions, so that no bound of a whole model is needed:

- `wiring`: in float64, with the exact function at every site, the rewritten graph is the original;
- `bound`, `gradient`: at the arguments that reach a site and the cotangent that comes back, the
  fused operator is within its derived bound, forward and for every argument;
- facts: how many elements of the results and gradients have other bits than the original's, and
  how far both are from the truth.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gelu_verify.rewriting.verification import verify

__all__ = ["verify"]


def __getattr__(name: str) -> Any:
    # Loaded when first used: a module of this package plans without torch.
    if name == "verify":
        from gelu_verify.rewriting.verification import verify

        return verify
    raise AttributeError(f"module 'gelu_verify.rewriting' has no attribute {name!r}")
