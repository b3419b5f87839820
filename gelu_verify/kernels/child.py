"""A process of our own that runs kernels: how it is started, heard, and how it ended."""

from __future__ import annotations

import contextlib
import json
import os
import queue
import signal
import subprocess
import sys
from typing import IO, Any

#: Events as the child wrote them; None when it will write no more.
Events = queue.Queue[dict[str, Any] | None]


def spawn(
    module: str, request: Any, device: str, stderr: IO[str], threads: int | None
) -> subprocess.Popen[str]:
    """Start ``module.main`` in a child with ``request`` as JSON on its stdin.

    threads: cores that its libraries may use, unless the user says otherwise; None for all.
    """
    environment = dict(os.environ)
    if threads is not None:
        environment.setdefault("OMP_NUM_THREADS", str(threads))
    if device == "cpu":
        # Triton kernels run on a CPU only in its interpreter, which must be chosen at import.
        environment["TRITON_INTERPRET"] = "1"
    # The child finds modules where this process does: with ``-m`` a file of the user's called
    # types.py or queue.py in the current folder would stand before the standard library's.
    program = f"import sys; sys.path[:] = {sys.path!r}; from {module} import main; main()"
    child = subprocess.Popen(
        [sys.executable, "-P", "-c", program],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=stderr,
        text=True,
        env=environment,
        start_new_session=True,
    )
    assert child.stdin is not None
    try:
        child.stdin.write(json.dumps(request))
        child.stdin.close()
    except BrokenPipeError:
        pass  # it died at once; the listener will say how
    return child


def read(child: subprocess.Popen[str], events: Events) -> None:
    """Put every event of a child into a queue, and None at the end; for a thread."""
    assert child.stdout is not None
    for line in child.stdout:
        events.put(json.loads(line))
    events.put(None)


def has_ended(child: subprocess.Popen[str]) -> bool:
    """Tell whether a child has ended, and leave it as a zombie whose number is not given again."""
    if child.returncode is not None:
        return True
    try:
        return os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT | os.WNOHANG) is not None
    except ChildProcessError:
        return True


def death(child: subprocess.Popen[str], stderr: IO[str]) -> str:
    """Return how a child ended, with the last line it wrote to stderr."""
    with contextlib.suppress(ChildProcessError):
        os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
    kill(child)
    code = child.wait()
    if code < 0:
        try:
            how = f"was killed by signal {signal.Signals(-code).name}"
        except ValueError:
            how = f"was killed by signal {-code}"
    else:
        how = f"exited with status {code}"
    stderr.seek(0)
    lines = [line.strip() for line in stderr.read()[-4000:].splitlines() if line.strip()]
    return f"the kernel's process {how}" + (f": {lines[-1][:300]}" if lines else "")


def kill(child: subprocess.Popen[str]) -> None:
    """End the child and everything it started, also where it has ended but is not waited for."""
    if child.returncode is None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(child.pid, signal.SIGKILL)
    child.wait()
