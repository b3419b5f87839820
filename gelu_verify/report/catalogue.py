"""The tables of ``gelu-verify list``."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from gelu_verify.contracts import BUILT_IN, DEFAULT
from gelu_verify.formats import FORMATS
from gelu_verify.kernels.spec import KernelSpec
from gelu_verify.operators import FORMULAS, arguments, names


def show(console: Console, kernels: list[KernelSpec]) -> None:
    """Print what can be checked and against what."""
    table = Table(title="Registered kernels", title_justify="left", box=None, pad_edge=False)
    # Names and summaries are whole words on one line; what is behind them comes with --json.
    for column in ("kernel", "operator", "formula"):
        table.add_column(column, no_wrap=True)
    table.add_column("summary")
    for spec in kernels:
        table.add_row(spec.name, spec.operator, spec.formula, escape(spec.summary))
    console.print(table)
    console.print()
    contracts = Table(
        title="Contracts, strictest first", title_justify="left", box=None, pad_edge=False
    )
    contracts.add_column("contract")
    contracts.add_column("promise")
    for contract in BUILT_IN:
        mark = " (default)" if contract.name == DEFAULT else ""
        contracts.add_row(contract.name + mark, contract.summary)
    console.print(contracts)
    console.print()
    operators = ", ".join(f"{name}({', '.join(arguments(name))})" for name in names())
    console.print(f"Operators: {operators}")
    console.print(f"Formulas:  {', '.join(FORMULAS)} (torch's approximate='none' is erf)")
    console.print(f"Formats:   {', '.join(FORMATS)}")


def show_compiled(console: Console, artefacts: Sequence[Any], index: Path) -> None:
    """Print what is compiled, of the records of ``reference_kernels.triton_fused.compiled``."""
    if not artefacts:
        console.print(f"nothing is compiled: {index} has no entry", soft_wrap=True)
        return
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for column in ("kernel", "target", "format", "compiled", "for", "hash"):
        table.add_column(column, no_wrap=column != "for")
    for part in artefacts:
        when = "ahead" if part.ahead else "first met"
        stored = when if part.is_stored else f"{when}, gone"
        cells = (part.kernel, part.target, part.format, stored, part.purpose, part.hash[:12])
        table.add_row(*(escape(cell) for cell in cells))
    console.print(table)
    console.print(f"{len(artefacts)} kernels; the index is {index}", soft_wrap=True)
