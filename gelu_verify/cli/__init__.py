"""The command line. Each command has a module; this one joins them and turns errors into a line."""

from __future__ import annotations

import os
import sys
from typing import Any, NoReturn

import typer

from gelu_verify.cli import (
    baseline,
    check,
    converge,
    gate,
    gate_alarms,
    hunt,
    listing,
    report,
    selftest,
)
from gelu_verify.errors import GeluVerifyError

#: What typer raises for a wrong option; it keeps its own copy of click, under another name.
_WrongUsage: Any = typer.BadParameter.__mro__[1]

app = typer.Typer(
    name="gelu-verify",
    help="Check GELU kernels against certified reference values.",
    epilog="Exit status: 0 all held; 1 a contract was broken, a baseline regressed, or a kernel "
    "crashed or timed out; "
    "2 wrong usage or configuration; 3 nothing could be checked.",
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command("check")(check.command)
app.command("gate")(gate.command)
app.add_typer(baseline.app)
app.command("gate-alarms")(gate_alarms.command)
app.command("hunt")(hunt.command)
app.command("converge")(converge.command)
app.command("list")(listing.command)
app.command("report")(report.command)
app.command("selftest")(selftest.command)


@app.callback(invoke_without_command=True)
def _options(
    context: typer.Context,
    version: bool = typer.Option(False, "--version", help="Print the version and exit."),
) -> None:
    if version:
        from gelu_verify import __version__

        typer.echo(f"gelu-verify {__version__}")
        raise typer.Exit
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())
        raise typer.Exit(2)


def main() -> None:
    """Run the command line; an error becomes one line and its exit status."""
    try:
        status = app(standalone_mode=False, prog_name="gelu-verify")
        sys.stdout.flush()
    except GeluVerifyError as error:
        _fail(str(error), error.exit_status)
    except _WrongUsage as error:
        _fail(" ".join(error.format_message().split()), 2)
    except (KeyboardInterrupt, typer.Abort):
        _fail("interrupted", 130)
    except BrokenPipeError:
        # The reader of our output has gone (``| head``): nothing is left to be said.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(141)
    sys.exit(status or 0)


def _fail(message: str, status: int) -> NoReturn:
    print(f"error: {message}" if status != 130 else message, file=sys.stderr)
    sys.exit(status)
