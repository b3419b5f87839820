"""Work through the shards on several processes, writing each to the ledger as it finishes."""

from __future__ import annotations

import hashlib
import json
import os
import platform
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import contextmanager
from dataclasses import asdict
from functools import cache
from multiprocessing import connection, get_context, parent_process

import mpmath
import numpy as np
import torch

from gelu_verify.ledger import Ledger
from gelu_verify.reference import coefficients, oracle
from gelu_verify.reference.certificate import source, sweep, zones
from gelu_verify.reference.certificate.zones import Shard
from gelu_verify.reference.optional import load

FUNCTIONS = tuple((formula, order) for formula in oracle.FORMULAS for order in (0, 1))
#: The modules that decide what a shard's result is.
METHOD_FILES = ("zones.py", "taylor.py", "sweep.py")


def work(
    shards: Iterable[Shard],
    ledger: Ledger,
    workers: int = 1,
    progress: Callable[[int, int], None] | None = None,
) -> None:
    """Examine every shard that the ledger lacks; one worker means this process."""
    done = finished(ledger)
    todo = [shard for shard in shards if shard not in done]
    if workers == 1:
        with _one_thread():
            _write(map(_examine, todo), len(todo), ledger, progress)
        return
    pool = ProcessPoolExecutor(workers, get_context("spawn"), _start_worker)
    try:
        futures = [pool.submit(_examine, shard) for shard in todo]
        _write((f.result() for f in as_completed(futures)), len(todo), ledger, progress)
    finally:
        pool.shutdown(cancel_futures=True)


def finished(ledger: Ledger) -> dict[Shard, sweep.Result]:
    """Return every shard in the ledger with its result."""
    done = {}
    for content in ledger.contents():
        entry = json.loads(content)
        done[Shard(**entry["shard"])] = sweep.Result(**entry["result"])
    return done


def run_key() -> dict[str, str]:
    """Return all that a shard's result depends on."""
    hashes = {
        "certificate of": source.source_hash(),
        "coefficients": table_hash(),
        "method": method_hash(),
    }
    return {**hashes, **environment()}


def method_hash() -> str:
    """Return the SHA-256 of the normalised source of the certificate's own arithmetic."""
    folder = source.FOLDER / "certificate"
    texts = [source.normalised((folder / name).read_text("utf-8")) for name in METHOD_FILES]
    return hashlib.sha256("\0".join(texts).encode()).hexdigest()


@cache
def table_hash() -> str:
    """Return the SHA-256 of every coefficient of the fast reference, as hexadecimal floats."""
    records: list[object] = [coefficients.erf_coefficients()]
    records += [coefficients.logistic_constants(formula) for formula in ("tanh", "sigmoid")]
    numbers: list[float] = []
    for record in records:
        for entry in vars(record).values():
            numbers += entry if isinstance(entry, tuple) else (entry,)
    return hashlib.sha256(" ".join(number.hex() for number in numbers).encode()).hexdigest()


def environment() -> dict[str, str]:
    """Return the libraries and the instruction set that results may depend on."""
    flint = load("flint")
    return {
        "cpu_capability": torch.backends.cpu.get_cpu_capability(),
        "flint": flint.__FLINT_VERSION__,
        "machine": platform.machine(),
        "mpmath": mpmath.__version__,
        "numpy": np.__version__,
        "python": platform.python_version(),
        "python_flint": flint.__version__,
        "torch": torch.__version__,
    }


def all_shards(functions: Iterable[tuple[str, int]] = FUNCTIONS) -> list[Shard]:
    """Return every shard of the functions."""
    return [shard for formula, order in functions for shard in zones.shards(formula, order)]


def _examine(shard: Shard) -> tuple[Shard, sweep.Result]:
    return shard, sweep.examine(shard)


def _number(shard: Shard) -> int:
    """Return a number that no other shard of a run has."""
    function = FUNCTIONS.index((shard.formula, shard.order))
    return (function << 1 | shard.negative) << 32 | shard.first


def _write(
    results: Iterable[tuple[Shard, sweep.Result]],
    total: int,
    ledger: Ledger,
    progress: Callable[[int, int], None] | None,
) -> None:
    for index, (shard, result) in enumerate(results, 1):
        content = {"shard": asdict(shard), "result": result.as_dict()}
        ledger.record(_number(shard), json.dumps(content))
        if progress is not None:
            progress(index, total)


@contextmanager
def _one_thread() -> Iterator[None]:
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)


def _start_worker() -> None:
    """Use one thread, and leave with the parent, even if it is killed."""
    torch.set_num_threads(1)
    parent = parent_process()
    if parent is not None:
        threading.Thread(target=_leave_with, args=(parent.sentinel,), daemon=True).start()


def _leave_with(sentinel: int) -> None:
    connection.wait([sentinel])
    os._exit(1)
