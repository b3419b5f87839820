"""Numerical accuracy and validation harness for fused GELU kernels.

``gelu_verify.check(kernel, format="bf16")`` checks a kernel from Python; ``gelu-verify`` is the
command line.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gelu_verify.api import check

__all__ = ["__version__", "check"]
__version__ = "0.1.0"


def __getattr__(name: str) -> Any:
    # Loaded when first used, so that the command line answers --help at once.
    if name == "check":
        from gelu_verify.api import check

        return check
    raise AttributeError(f"module 'gelu_verify' has no attribute {name!r}")
