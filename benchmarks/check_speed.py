"""How long a user waits: ``--help``, and ``check`` of one kernel in bf16, forward and backward.

Each command runs several times as a whole process, the one in Triton's interpreter once; the table
shows the median wall time, the processor time of all its processes (which other work on the machine
hardly changes), the peak memory of the largest, and what the checks themselves took. The depth is
``standard``, that of the gate: all cases of a fused operator.
``python -m benchmarks.check_speed [WORD]``: only the commands that contain a word.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import psutil
from rich.console import Console
from rich.table import Table

from benchmarks.processes import computed

#: Command to number of runs.
_COMMANDS = {
    "--help": 5,
    "list": 5,
    "check torch-erf --format bf16": 5,
    "check torch-erf --format fp32": 5,
    "check triton-erf --format bf16": 5,
    "check torch-linear-gelu --format bf16": 3,
    "check triton-linear-gelu --format bf16 --timeout 300": 1,
}
_COMMAND = [sys.executable, "-m", "gelu_verify"]


@dataclass(frozen=True)
class Run:
    """One run: wall and processor time (s), peak resident memory (MiB), the checks alone (s)."""

    wall: float
    computed: float
    memory: float
    checks: float


def measure(arguments: list[str]) -> Run:
    """Run a command once and watch it and its children."""
    with tempfile.TemporaryDirectory() as folder:
        results = Path(folder) / "results.json"
        if arguments[0] == "check":
            arguments = [*arguments, "--json", str(results)]
        before, started = computed(), time.perf_counter()
        child = subprocess.Popen([*_COMMAND, *arguments], stdout=subprocess.DEVNULL)
        peak = 0
        while child.poll() is None:
            peak = max(peak, _resident(child.pid))
            time.sleep(0.02)
        wall, spent = time.perf_counter() - started, computed() - before
        checks = 0.0
        if results.exists():
            kernels = json.loads(results.read_text())["kernels"]
            checks = sum(kernel["seconds"] for kernel in kernels)
    return Run(wall, spent, peak / 2**20, checks)


def _resident(pid: int) -> int:
    try:
        process = psutil.Process(pid)
        family = [process, *process.children(recursive=True)]
        return max(member.memory_info().rss for member in family)
    except psutil.Error:
        return 0


def main() -> None:
    """Print the table."""
    table = Table(title=f"Median of runs, {os.cpu_count()} cores", title_justify="left")
    for column in ("command", "runs", "wall s", "computed s", "checks s", "peak MiB"):
        table.add_column(column, justify="left" if column == "command" else "right")
    word = sys.argv[1] if len(sys.argv) > 1 else ""
    for line, count in _COMMANDS.items():
        if word not in line:
            continue
        runs = [measure(line.split()) for _ in range(count)]
        table.add_row(
            f"gelu-verify {line}",
            str(count),
            f"{statistics.median(run.wall for run in runs):.2f}",
            f"{statistics.median(run.computed for run in runs):.2f}",
            f"{statistics.median(run.checks for run in runs):.2f}",
            f"{max(run.memory for run in runs):.0f}",
        )
    Console(width=100).print(table)


if __name__ == "__main__":
    main()
