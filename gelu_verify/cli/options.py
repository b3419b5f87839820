"""Options that several commands have: each is worded once."""

from __future__ import annotations

from typing import Annotated, Any

import typer
from rich.markup import escape

from gelu_verify.config.options import OPTIONS

KERNEL_HELP = (
    "A registered name (gelu-verify list), module:function, path/to/file.py:function, "
    "path/to/lib.so:symbol (float*, float*, size_t), "
    "or torch.ops.namespace.name."
)


def setting(name: str) -> Any:
    """Return the option that ``gelu_verify.config`` words."""
    return typer.Option(help=escape(OPTIONS[name].text), metavar=name.upper())


Operator = Annotated[str | None, setting("operator")]
Formula = Annotated[str | None, setting("formula")]
Contract = Annotated[str | None, setting("contract")]
Device = Annotated[str, typer.Option(help="cpu, cuda or cuda:N.")]


def seed(what: str) -> Any:
    """Return the option for the seed of what is drawn at random."""
    return typer.Option(help=f"Seed of {what}.")


def timeout(seconds: str) -> Any:
    """Return the option for a time limit; ``seconds`` says which seconds are meant."""
    return typer.Option(min=0.1, help=f"Seconds {seconds}.")


def output(what: str) -> Any:
    """Return the option for a file that is written."""
    return typer.Option(help=f"Write {what} to this file (- for stdout).")
