"""``gelu-verify list``: registered kernels, operators, formats, contracts; what is compiled."""

from __future__ import annotations

import typer


def command(
    as_json: bool = typer.Option(False, "--json", help="Print the kernels as JSON."),
    compiled: bool = typer.Option(
        False,
        "--compiled",
        help="List instead what the fused Triton kernels have compiled, ahead or when first met.",
    ),
) -> None:
    """List registered kernels, operators, formulas, formats and contracts."""
    if compiled:
        _list_compiled(as_json)
        return
    from gelu_verify.kernels.registry import registered

    kernels = registered()
    if as_json:
        import json

        typer.echo(json.dumps([spec.model_dump() for spec in kernels.values()], indent=2))
        return
    from gelu_verify.report import catalogue, terminal

    catalogue.show(terminal.console(), list(kernels.values()))


def _list_compiled(as_json: bool) -> None:
    from gelu_verify.errors import UnavailableError

    try:
        from reference_kernels.triton_fused import compiled
    except ImportError as error:
        raise UnavailableError(f"compiled: {error}. Install Triton.") from None
    found = compiled.listed()
    if as_json:
        import json
        from dataclasses import asdict

        rows = [asdict(part) | {"stored": part.is_stored} for part in found]
        typer.echo(json.dumps(rows, indent=2))
        return
    from gelu_verify.report import catalogue, terminal

    catalogue.show_compiled(terminal.console(), found, compiled.index_path())
