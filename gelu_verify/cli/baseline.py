"""``gelu-verify baseline``: accept what is measured now, show what is accepted."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from gelu_verify.cli import settings

if TYPE_CHECKING:
    from gelu_verify.records import Results

app = typer.Typer(
    name="baseline",
    help="Accept measurements as the baselines of later gates, and show them.",
    no_args_is_help=True,
)


@app.command("accept")
def accept(
    config: settings.Config = settings.DEFAULT_PATH,
    kernel: settings.Kernels = None,
    devices: settings.Devices = None,
    timeout: settings.Timeout = None,
    workers: settings.Workers = None,
    baselines: settings.Baselines = None,
    results: Annotated[
        Path | None,
        typer.Option(help="Accept what this JSON file of a gate holds instead of measuring."),
    ] = None,
    prune: Annotated[
        bool,
        typer.Option("--prune", help="Delete baselines of what is no longer configured."),
    ] = False,
) -> None:
    """Write a baseline for each kernel, format and class of device that keeps its contract.

    Only files whose figures changed are written. One that breaks its contract is refused, and the
    exit status is 1.

    Example: gelu-verify baseline accept --kernel my_kernels.py:gelu
    """
    from gelu_verify.baseline import Folder, acceptance
    from gelu_verify.cli import progress
    from gelu_verify.gate import plan, run
    from gelu_verify.gate.record import GateResults
    from gelu_verify.report import files

    given = {"devices": devices, "timeout": timeout, "workers": workers, "baselines": baselines}
    declared, chosen = settings.read(config, kernel, given)
    folder = Folder.read(Path(chosen.baselines), lenient=True)
    files.require_writable(folder.path / ".probe")
    jobs = plan.jobs(chosen)
    if results is None:
        with progress.bar(jobs) as bar:
            measured: Results = run.measure(jobs, chosen, bar)
    else:
        measured = files.read(results, GateResults)
    accepted = acceptance.accept(measured, folder)
    for line in accepted.lines():
        typer.echo(line)
    if prune:
        for key in set(folder.keys()) - plan.keys(declared):
            for path in folder.remove(key):
                typer.echo(f"deleted {path}")
    raise typer.Exit(accepted.exit_status)


@app.command("show")
def show(
    config: settings.Config = settings.DEFAULT_PATH, baselines: settings.Baselines = None
) -> None:
    """Print the baselines as a table."""
    from gelu_verify.baseline import Folder
    from gelu_verify.config.file import load
    from gelu_verify.report import baselines as report
    from gelu_verify.report import terminal

    where = baselines or load(config).baselines
    report.show(terminal.console(), Folder.read(Path(where)))
