"""Triton's CPU interpreter: whether a kernel ran in it, and what it is known to get wrong.

Known faults (Triton 3.6 to 3.9): arithmetic on bf16 values, the fp32 to bf16 conversion, fp8
conversions. Evidence from the interpreter is marked as simulated, and the canaries run first:
kernels so small that a wrong result can only be the interpreter's own.
"""

from __future__ import annotations

import sys
from typing import Any

from gelu_verify.kernels import autotuning

_MODULE = "triton.runtime.interpreter"
_launches = 0
_watched = False


def launches() -> int:
    """Return how many launches the interpreter has executed since it was first seen."""
    _watch()
    return _launches


def _watch() -> None:
    """Count launches from now on, if Triton is loaded; loading it here would cost a second."""
    global _watched
    autotuning.watch()
    module: Any = sys.modules.get(_MODULE)
    if _watched or module is None or not hasattr(module, "GridExecutor"):
        return
    original = module.GridExecutor.__call__

    def counted(self: Any, *args: Any, **kwargs: Any) -> Any:
        global _launches
        _launches += 1
        return original(self, *args, **kwargs)

    module.GridExecutor.__call__ = counted
    _watched = True
