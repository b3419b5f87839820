"""The command line. Each command has a module; this one joins them and turns errors into a line."""

from __future__ import annotations

import sys

import typer

from gelu_verify.cli import check, listing
from gelu_verify.errors import GeluVerifyError

app = typer.Typer(
    name="gelu-verify",
    help="Check GELU kernels against certified reference values.",
    epilog="Exit status: 0 all contracts held; 1 one was broken, or a kernel crashed or timed out; "
    "2 wrong usage; 3 nothing could be checked.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command("check")(check.command)
app.command("list")(listing.command)


@app.callback(invoke_without_command=True)
def _options(
    version: bool = typer.Option(False, "--version", help="Print the version and exit."),
) -> None:
    if version:
        from gelu_verify import __version__

        typer.echo(f"gelu-verify {__version__}")
        raise typer.Exit


def main() -> None:
    """Run the command line; a gelu_verify error becomes one line and its exit status."""
    try:
        app()
    except GeluVerifyError as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(error.exit_status)
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        sys.exit(130)
