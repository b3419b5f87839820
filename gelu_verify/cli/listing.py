"""``gelu-verify list``: the registered kernels, and what operators, formats and contracts exist."""

from __future__ import annotations

import typer


def command(
    as_json: bool = typer.Option(False, "--json", help="Print the kernels as JSON."),
) -> None:
    """List registered kernels, operators, formulas, formats and contracts."""
    from gelu_verify.kernels.registry import registered

    kernels = registered()
    if as_json:
        import json

        typer.echo(json.dumps([spec.model_dump() for spec in kernels.values()], indent=2))
        return
    from gelu_verify.report import catalogue, terminal

    catalogue.show(terminal.console(), list(kernels.values()))
