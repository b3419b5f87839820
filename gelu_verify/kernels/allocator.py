"""Keep freed memory in a process that frees and takes the same arrays again and again.

glibc maps an array of more than 128 KiB afresh and gives it back when it is freed, or trims its
heap, so that every temporary of NumPy (Triton's interpreter makes hundreds a program) is faulted in
and zeroed again: 46 % of the time of an interpreted kernel was the system's.
"""

from __future__ import annotations

import ctypes
import platform

_M_TRIM_THRESHOLD, _M_TOP_PAD, _M_MMAP_THRESHOLD = -1, -2, -3
#: The most that glibc takes for it; larger arrays are still given back at once.
_MAPPED = 32 << 20
_KEPT = 256 << 20
_PAD = 32 << 20


def keep_freed_memory() -> None:
    """Let this process keep up to 256 MiB that it has freed; does nothing without glibc."""
    if platform.libc_ver()[0] != "glibc":
        return
    mallopt = ctypes.CDLL(None).mallopt
    for option, value in (
        (_M_MMAP_THRESHOLD, _MAPPED),
        (_M_TRIM_THRESHOLD, _KEPT),
        (_M_TOP_PAD, _PAD),
    ):
        mallopt(ctypes.c_int(option), ctypes.c_int(value))
