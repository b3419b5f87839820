"""How long all 2^32 pairs of two 16-bit arguments take: the kernel alone, and with the measuring.

``python -m benchmarks.pairs_speed [--device cuda] [--format bf16] [--rows 256] [--kernel NAME]``.
On a CPU one process measures rows spread evenly over all, and the figures are scaled to all pairs
and to the cores that a campaign uses; on a GPU all rows are run.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable
from typing import Any

import torch
from rich.console import Console
from rich.table import Table

from benchmarks.stopwatch import Stopwatch, synchronize
from gelu_verify.campaign import pair_shard, shard
from gelu_verify.exhaustive.census import Census
from gelu_verify.job import Job, plan

_COLUMNS = 1 << 16


def _timed(job: Job, rows: int, function: Callable[..., Any]) -> tuple[float, float]:
    """Return seconds in the kernel and in all, over rows in groups spread over all patterns."""
    timed = Stopwatch(function, job.device)
    together = rows if rows == _COLUMNS else min(16, rows)
    started = time.perf_counter()
    census = Census()
    for first in range(0, _COLUMNS, _COLUMNS * together // rows):
        start = first * _COLUMNS
        pair_shard.measure_shard(job, timed, start, start + together * _COLUMNS, census)
    synchronize(job.device)
    assert census.patterns == rows * _COLUMNS
    return timed.seconds, time.perf_counter() - started


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--format", default="bf16")
    parser.add_argument("--rows", type=int, default=0, help="a power of two; 0: 256, all on a GPU")
    parser.add_argument("--repeats", type=int, default=3)
    names = ["torch-bias-gelu", "torch-geglu", "torch-erf"]
    parser.add_argument("--kernel", nargs="*", default=names)
    options = parser.parse_args()
    on_gpu = options.device.startswith("cuda")
    rows = options.rows or (_COLUMNS if on_gpu else 256)
    cores = 1 if on_gpu else len(os.sched_getaffinity(0))
    where = torch.cuda.get_device_name() if on_gpu else f"{cores} cores"
    table = Table(title=f"All pairs of {options.format} on {where}, {rows} rows run; seconds")
    for column in ("kernel", "kernel alone", "beyond it", "ratio of all to kernel"):
        table.add_column(column)
    for name in options.kernel:
        formats = (options.format,)
        jobs = plan(name, format_names=formats, device=options.device, depth="exhaustive")
        for job in (job for job in jobs if pair_shard.is_of_pairs(job)):
            function = shard._function(job.model_dump_json())
            _timed(job, 16, function)  # compiles
            runs = [_timed(job, rows, function) for _ in range(options.repeats)]
            kernel, total = min(runs, key=lambda run: run[1])
            scale = _COLUMNS / rows / cores
            table.add_row(
                f"{name} {job.operator}",
                f"{kernel * scale:.4g}",
                f"{(total - kernel) * scale:.4g}",
                f"{total / kernel:.2f}",
            )
    Console(width=110).print(table)


if __name__ == "__main__":
    main()
