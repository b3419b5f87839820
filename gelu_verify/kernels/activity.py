"""Whether code under test is running now: what time limits are counted by.

The harness's own work (exact values, statistics) can take longer than a kernel may; it must not be
charged to the kernel.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

_depth = 0


def running() -> bool:
    """Tell whether a kernel is being called or its module imported."""
    return _depth > 0


@contextmanager
def of_kernel() -> Iterator[None]:
    """Mark the time inside as the kernel's."""
    global _depth
    _depth += 1
    try:
        yield
    finally:
        _depth -= 1


@contextmanager
def of_harness() -> Iterator[None]:
    """Mark the time inside as our own, also where a kernel is being called or imported.

    For work that comes before a kernel can run at all, as building it.
    """
    global _depth
    known, _depth = _depth, 0
    try:
        yield
    finally:
        _depth = known
