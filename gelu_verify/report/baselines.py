"""Baselines as a table of 100 columns."""

from __future__ import annotations

from rich.console import Console
from rich.table import Table
from rich.text import Text

from gelu_verify.baseline import Folder, Measurement
from gelu_verify.report.numbers import figure


def show(console: Console, folder: Folder) -> None:
    """Print a row for each measurement of each baseline."""
    table = Table(box=None, pad_edge=False, padding=(0, 1, 0, 0), header_style="bold")
    for name in ("kernel", "operator", "format", "class", "max error", "holds", "measured"):
        table.add_column(name, justify="right" if name == "max error" else "left", overflow="fold")
    for (_, key), baseline in sorted(folder.found.items(), key=lambda item: str(item[0][1])):
        made = baseline.provenance
        for m in baseline.measurements:
            label = f"{key.kernel} ({m.via})" if m.via else key.kernel
            cells = (label, m.operator, key.format, baseline.device_class, _error(m),
                     m.tightest or "none", made.date[:10])  # fmt: skip
            table.add_row(*(Text(cell) for cell in cells))
    console.print(table)
    console.print(Text(f"files in {folder.path}: {len(folder.found)}"))


def _error(m: Measurement) -> str:
    if m.elementwise:
        return f"{figure(m.elementwise.max_error_ulp)} ULP"
    return f"{figure(m.bound.max_ratio)} of bound" if m.bound else "-"
