"""Numba's decorator for the loops of this package, and where what it compiles is kept.

Numba looks at the file of a function only to tell whether its cache is stale. The constants of the
loops come from other files, so the cache has a folder for each state of all of them together.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numba

_CONFIG: Any = numba.config
_HERE = Path(__file__).parent
_SOURCES = (
    *sorted((_HERE / "cpu_kernels").glob("*.py")),
    *(_HERE / name for name in ("cpu_reference.py", "figures.py", "jit.py", "pieces.py")),
    _HERE.parent / "measure" / "histogram.py",
)


@cache
def _folder() -> Path:
    state = hashlib.sha256(b"".join(path.read_bytes() for path in _SOURCES)).hexdigest()[:16]
    root = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return root / "gelu_verify" / "numba" / state


def compiled(function: Callable[..., Any]) -> Any:
    """Compile a function when it is first called, without contraction or reordering."""
    known, _CONFIG.CACHE_DIR = _CONFIG.CACHE_DIR, str(_folder())
    try:
        return numba.njit(nogil=True, cache=True, fastmath=False)(function)
    except RuntimeError:  # no folder to write to: it is compiled in every process
        return numba.njit(nogil=True, fastmath=False)(function)
    finally:
        _CONFIG.CACHE_DIR = known  # that of the kernels under test
