"""A rewritten model against the original and against the truth, outputs and gradients.

Three questions, so that no bound of a whole model is needed:

- `wiring`: in float64, with the exact function at every site, the rewritten graph is the original;
- `bound`, `gradient`: at the arguments that reach a site and the cotangent that comes back, the
  fused operator is within its derived bound, forward and for every argument;
- facts: how many elements of the results and gradients have other bits than the original's, and
  how far both are from the truth.
"""

from __future__ import annotations

from gelu_verify.rewriting.verify import verify

__all__ = ["verify"]
