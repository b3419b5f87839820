"""How long all 2^32 inputs of fp32 take: the kernel alone, the measuring beside it, the ratio.

``python -m benchmarks.exhaustive_speed [--device cuda] [--patterns 2^28] [--kernel NAME ...]``.
On a CPU one process measures a share of the patterns and the figures are scaled by the number of
cores that a campaign uses; on a GPU everything is run. Rows of growth, 2^24 and 2^28 inputs beside
all of them, show that time grows with the number of inputs and memory does not. For scale, the same
through mpmath and Arb, extrapolated from fewer inputs.
"""

from __future__ import annotations

import argparse
import os
import resource
import time
from collections.abc import Callable
from typing import Any

import torch
from rich.console import Console
from rich.table import Table

from benchmarks.stopwatch import Stopwatch, synchronize
from gelu_verify.campaign import shard
from gelu_verify.exhaustive.census import Census
from gelu_verify.exhaustive.names import engine_name
from gelu_verify.job import Job, plan

_ALL = 1 << 32


def _timed(job: Job, patterns: int, function: Callable[..., Any]) -> tuple[float, float]:
    """Return seconds in the kernel and in all, over ``patterns`` spread evenly over fp32."""
    timed = Stopwatch(function, job.device)
    # Whole shards are too coarse for a share: take the first part of each of 64 stretches.
    stretches = 64 if patterns < _ALL else 1
    started = time.perf_counter()
    census = Census()
    for index in range(stretches):
        start = index * (_ALL // stretches)
        shard.measure_shard(job, timed, start, start + patterns // stretches, census)
    synchronize(job.device)
    assert census.patterns == patterns
    return timed.seconds, time.perf_counter() - started


def _peak_mib(device: str) -> float:
    """Return the most memory in use so far: of the GPU since the last reset, or of the process."""
    if device.startswith("cuda"):
        peak = torch.cuda.max_memory_allocated() / 2**20
        torch.cuda.reset_peak_memory_stats()
        return peak
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def _growth(table: Table, job: Job, largest: int) -> None:
    """Add rows of one run each, unscaled, over more and more patterns spread over fp32."""
    function = shard._function(job.model_dump_json())
    for patterns in sorted({1 << 24, 1 << 28, largest}):
        if patterns > largest:
            continue
        kernel, total = _timed(job, patterns, function)
        table.add_row(
            f"{job.spec.name} {job.operator}",
            f"2^{patterns.bit_length() - 1}",
            f"{kernel:.4g}",
            f"{total - kernel:.4g}",
            f"{(total - kernel) / patterns * 1e9:.3g}",
            f"{_peak_mib(job.device):.0f}",
        )


def _row(table: Table, job: Job, patterns: int, repeats: int) -> None:
    function = shard._function(job.model_dump_json())
    cores = 1 if job.device.startswith("cuda") else len(os.sched_getaffinity(0))
    runs = [_timed(job, patterns, function) for _ in range(repeats)]
    kernel, total = min(runs, key=lambda run: run[1])
    scale = _ALL / patterns / cores
    beyond = (total - kernel) * scale
    table.add_row(
        f"{job.spec.name} {job.operator}",
        f"2^{patterns.bit_length() - 1}",
        f"{kernel * scale:.4g}",
        f"{beyond:.4g}",
        f"{total / kernel:.2f}",
    )


def _through_libraries(table: Table, count: int) -> None:
    """Add rows for the exact values of the nontrivial inputs through mpmath and Arb, one core."""
    from gelu_verify.reference import arb, oracle

    xs = torch.linspace(-14.0, 5.0, count, dtype=torch.float64).float().tolist()
    for name, value in (
        ("mpmath, 100 bits", lambda x: oracle.value("erf", x, bits=100)),
        ("Arb, 64 bits", lambda x: arb.ball("erf", x, 0, 64)),
    ):
        started = time.perf_counter()
        for x in xs:
            value(x)
        each = (time.perf_counter() - started) / count
        cores = len(os.sched_getaffinity(0))
        table.add_row(
            f"{name}: {each * 1e6:.1f} µs each", str(count), "-", f"{each * _ALL / cores:.3g}", "-"
        )


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--patterns", type=int, default=0, help="0: 2^26 on a CPU, all on a GPU")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--kernel", nargs="*", default=["torch-erf", "torch-tanh"])
    parser.add_argument("--growth", action="store_true", help="rows of growth as well")
    options = parser.parse_args()
    on_gpu = options.device.startswith("cuda")
    patterns = options.patterns or (_ALL if on_gpu else 1 << 26)
    if not on_gpu:
        torch.set_num_threads(1)
    where = torch.cuda.get_device_name() if on_gpu else f"{len(os.sched_getaffinity(0))} cores"
    setting = f"{where}, torch {torch.__version__}, engine {engine_name(options.device)}"
    table = Table(title=f"All fp32 inputs on {setting}; seconds")
    growth = Table(title=f"One process on {setting}; seconds")
    for column in ("kernel", "measured", "kernel alone", "beyond it", "ns an input", "peak MiB"):
        growth.add_column(column)
    for column in ("kernel", "measured", "kernel alone", "beyond it", "ratio of all to kernel"):
        table.add_column(column)
    for name in options.kernel:
        for job in plan(name, format_names=("fp32",), device=options.device, depth="exhaustive"):
            _row(table, job, patterns, options.repeats)
            if options.growth:
                _growth(growth, job, patterns)
    if not on_gpu:
        _through_libraries(table, 20_000)
    console = Console(width=110)
    console.print(table)
    if options.growth:
        console.print(growth)


if __name__ == "__main__":
    main()
