"""Where shards run: processes of this machine, or the workers of a Dask cluster."""

from __future__ import annotations

import multiprocessing
import os
import re
import signal
import socket
import sys
from collections.abc import Iterator
from concurrent.futures import BrokenExecutor, Executor, ProcessPoolExecutor
from contextlib import contextmanager, suppress
from typing import Any

import psutil

from gelu_verify.errors import UnavailableError, UsageError
from gelu_verify.kernels.allocator import keep_freed_memory
from gelu_verify.kernels.orphans import leave_with_parent

#: How often a Dask cluster runs a shard again whose worker was lost.
_RETRIES = 3
_CONNECT_SECONDS = 10


def worker_count(device: str) -> int:
    """Return how many processes run shards here: one a core, or one for a GPU."""
    return 1 if device.startswith("cuda") else len(os.sched_getaffinity(0))


def losses() -> tuple[type[BaseException], ...]:
    """Return what executors raise when a worker, or all of them, were lost."""
    if "distributed" not in sys.modules:
        return (BrokenExecutor,)
    from distributed import CancelledError, KilledWorker
    from distributed.comm import CommClosedError

    return (BrokenExecutor, KilledWorker, CancelledError, CommClosedError)


@contextmanager
def local(workers: int, device: str) -> Iterator[Executor]:
    """Yield processes that were started afresh: a fork would share torch's threads."""
    environment = {"OMP_NUM_THREADS": "1"}
    if device == "cpu":
        environment["TRITON_INTERPRET"] = "1"
    pool = ProcessPoolExecutor(
        workers,
        mp_context=multiprocessing.get_context("spawn"),
        initializer=_prepare,
        initargs=(environment,),
    )
    try:
        with _no_main():
            # A process starts when a task comes and none is idle: so many, so many processes.
            for _ in range(workers):
                pool.submit(os.getpid)
        yield pool
    finally:
        # A worker that hangs in the kernel would hold up shutdown for ever.
        for process in list((pool._processes or {}).values()):
            process.kill()
        pool.shutdown(wait=True, cancel_futures=True)


def largest(pool: Executor) -> int:
    """Return the bytes that the largest process of a local pool holds resident; 0 for a cluster."""
    resident = 0
    for pid in list(getattr(pool, "_processes", None) or ()):
        with suppress(psutil.Error):  # it has just ended
            resident = max(resident, psutil.Process(pid).memory_info().rss)
    return resident


def _prepare(environment: dict[str, str]) -> None:
    os.environ.update(environment)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the parent, which ends this one
    leave_with_parent()
    keep_freed_memory()


@contextmanager
def _no_main() -> Iterator[None]:
    """Keep processes from importing the script that runs: it may have no ``__main__`` guard."""
    main = sys.modules["__main__"]
    hidden = {name: getattr(main, name, None) for name in ("__file__", "__spec__")}
    main.__file__ = None
    main.__spec__ = None
    try:
        yield
    finally:
        for name, value in hidden.items():
            setattr(main, name, value)


@contextmanager
def cluster(address: str) -> Iterator[Executor]:
    """Yield the executor of a running Dask scheduler."""
    try:
        from distributed import Client
    except ImportError:
        raise UnavailableError(
            "scheduler: got an address, expected the package distributed to be installed. "
            "Install gelu_verify[dask]."
        ) from None
    try:
        _require_listener(address)
        client: Any = Client(address, timeout=_CONNECT_SECONDS)
    except (OSError, ValueError, TimeoutError) as error:
        raise UsageError(
            f"scheduler: got {address!r}, expected the address of a running Dask scheduler "
            f"such as tcp://127.0.0.1:8786 ({type(error).__name__})."
        ) from None
    try:
        yield client.get_executor(retries=_RETRIES, pure=False)
    finally:
        client.close()


def _require_listener(address: str) -> None:
    """Raise OSError or ValueError where nothing can answer, before Dask starts a thread to ask."""
    found = re.fullmatch(r"(?:tcp|tls)://(.+):(\d{1,5})", address)
    if found is None:
        raise ValueError(address)
    host, port = found[1].strip("[]"), int(found[2])
    socket.create_connection((host, port), timeout=_CONNECT_SECONDS).close()
