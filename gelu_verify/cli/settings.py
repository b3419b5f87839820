"""The settings of a gate on the command line: the configuration file, and each option over it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from gelu_verify.cli.options import Contract, Formula, Operator, setting

if TYPE_CHECKING:
    from gelu_verify.config.settings import Settings

DEFAULT_PATH = Path("pyproject.toml")

Config = Annotated[Path, typer.Option(help=r"File with \[tool.gelu_verify].")]
Kernels = Annotated[
    list[str] | None,
    typer.Option(
        "--kernel",
        help="Only this kernel of the configuration, as it is named there. May be repeated.",
    ),
]
Formats = Annotated[str | None, setting("formats")]
Devices = Annotated[str | None, setting("devices")]
Sweep = Annotated[str | None, setting("sweep")]
Seed = Annotated[str | None, setting("seed")]
Profile = Annotated[str | None, setting("profile")]
Examples = Annotated[str | None, setting("examples")]
Timeout = Annotated[str | None, setting("timeout")]
Workers = Annotated[str | None, setting("workers")]
Baselines = Annotated[str | None, setting("baselines")]

__all__ = ["DEFAULT_PATH", "Contract", "Formula", "Operator", "read"]


def read(
    config: Path, kernels: list[str] | None, given: dict[str, str | None]
) -> tuple[Settings, Settings]:
    """Return the settings of a file, and those with the options of the command line over them."""
    from gelu_verify.config.file import load
    from gelu_verify.errors import UsageError, unknown_name

    declared = load(config)
    settings = declared.over(given)
    names = [entry.kernel for entry in declared.kernels]
    for name in kernels or ():
        if name not in names:
            raise unknown_name("kernel", name, names or ["none"])
    if kernels:
        chosen = tuple(entry for entry in settings.kernels if entry.kernel in kernels)
        settings = settings.model_copy(update={"kernels": chosen})
    if not declared.kernels:
        raise UsageError(
            f"configuration {config}: got no kernel, expected at least one. "
            "Add [[tool.gelu_verify.kernels]]."
        )
    return declared, settings
