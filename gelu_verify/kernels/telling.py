"""The child's side of a conversation: a request from stdin, events as JSON lines.

Between events it says again and again whose time passes: the kernel's or our own. A kernel that
prints writes to stderr, so that it cannot disturb the events.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
import threading
import time
from collections.abc import Iterator
from typing import IO, Any

from gelu_verify.errors import GeluVerifyError
from gelu_verify.kernels import activity
from gelu_verify.kernels.allocator import keep_freed_memory
from gelu_verify.kernels.orphans import leave_with_parent

_TICK_SECONDS = 0.25
_LOCK = threading.Lock()


def begin() -> tuple[Any, IO[str]]:
    """Return the request and where events go; from here on the kernel's stdout is stderr."""
    leave_with_parent()
    keep_freed_memory()
    # Nothing that Hypothesis notes is for the user's folder: no folder can be made below a file.
    os.environ["HYPOTHESIS_STORAGE_DIRECTORY"] = os.devnull
    request = json.load(sys.stdin)
    events = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    threading.Thread(target=_tell_time, args=(events,), daemon=True).start()
    return request, events


def tell(events: IO[str], kind: str, **content: object) -> None:
    """Write an event."""
    with _LOCK:
        events.write(json.dumps({"event": kind, **content}) + "\n")
        events.flush()


@contextlib.contextmanager
def telling_errors(events: IO[str]) -> Iterator[None]:
    """End what is inside at an error of ours, and tell it: the parent raises it as its own."""
    try:
        yield
    except GeluVerifyError as error:
        tell(events, "error", message=str(error), exit_status=error.exit_status)


def _tell_time(events: IO[str]) -> None:
    while True:
        time.sleep(_TICK_SECONDS)
        with contextlib.suppress(OSError):
            tell(events, "busy" if activity.running() else "own")
