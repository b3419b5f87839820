"""How long a gate takes: this project's own, 20 kernels and formats at the standard sweep.

Prints wall time, the time that all its processes computed, and that time spread over the cores:
what a machine with nothing else to do would take at best. A second run is no faster, because it
reuses nothing but compiled kernels.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from rich.console import Console
from rich.table import Table

from benchmarks.processes import computed

_RUNS = 2
_COMMAND = [sys.executable, "-m", "gelu_verify", "gate"]


def main() -> None:
    """Run the gate and print the table."""
    cores = os.cpu_count() or 1
    table = Table(title=f"gelu-verify gate, {cores} cores", title_justify="left")
    for name in ("run", "kernels and formats", "inputs", "wall s", "computed s", "per core s"):
        table.add_column(name, justify="right")
    for number in range(1, _RUNS + 1):
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "gate.json"
            before, started = computed(), time.perf_counter()
            command = [*_COMMAND, "--json", str(file)]
            done = subprocess.run(command, stdout=subprocess.DEVNULL, check=False)
            wall, spent = time.perf_counter() - started, computed() - before
            kernels = json.loads(file.read_text())["kernels"]
        pairs = {(k["name"], k["format"]) for k in kernels}
        inputs = sum(k["accuracy"]["inputs"] for k in kernels if k["accuracy"])
        cells = (number, len(pairs), f"{inputs:,}", f"{wall:.1f}", f"{spent:.1f}",
                 f"{spent / cores:.1f}")  # fmt: skip
        table.add_row(*map(str, cells))
        if done.returncode:
            print(f"the gate's exit status was {done.returncode}", file=sys.stderr)
    Console(width=100).print(table)


if __name__ == "__main__":
    main()
