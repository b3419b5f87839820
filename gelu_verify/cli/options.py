"""Options that several commands have: each is worded once."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from gelu_verify import operators

KERNEL_HELP = (
    "A registered name (gelu-verify list), module:function, path/to/file.py:function, "
    "path/to/lib.so:symbol (float*, float*, size_t), "
    "or torch.ops.namespace.name."
)

Operator = Annotated[
    str | None, typer.Option(help=f"What it computes: {', '.join(operators.names())}.")
]
Formula = Annotated[
    str | None, typer.Option(help="Which GELU it claims: erf, tanh or sigmoid. [default: erf]")
]
Contract = Annotated[
    str | None,
    typer.Option(
        help="What it promises, strictest first: correctly_rounded, faithful, tail_accurate, "
        "saturating, cancelling, approximation. [default: what it declares, else cancelling]"
    ),
]
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
