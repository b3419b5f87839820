"""The tables of ``gelu-verify list``."""

from __future__ import annotations

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
