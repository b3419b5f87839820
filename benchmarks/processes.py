"""What child processes cost."""

from __future__ import annotations

import resource


def computed() -> float:
    """Return the seconds that ended child processes computed, those they waited for included."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime
