"""``gelu-verify selftest``: every defect must be rejected, every sound kernel accepted."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from gelu_verify.cli import options


def command(
    kernels: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[KERNEL]...", help="Names of the catalogue, in place of all of it."
        ),
    ] = None,
    quick: Annotated[
        bool,
        typer.Option(
            "--quick",
            help="The first format of each kernel, of a defect only the checks that must reject it,"
            " and one seed in place of twenty.",
        ),
    ] = False,
    device: options.Device = "cpu",
    workers: Annotated[
        int | None, typer.Option(min=1, help="Processes at a time. \\[default: one a core or GPU]")
    ] = None,
    json: Annotated[Path | None, options.output("the kill matrix")] = None,
    markdown: Annotated[Path | None, options.output("the kill matrix in Markdown")] = None,
) -> None:
    """Run kernels with one known fault each, and sound ones, through the checks.

    Exit status 1 for a defect that survives or is rejected for another reason than the catalogue
    states, and for a sound kernel that is flagged.

    Example: gelu-verify selftest --quick
    """
    from rich.console import Console
    from rich.progress import Progress

    from gelu_verify.report import files, selftest, terminal
    from gelu_verify.selftest import catalogue, run

    for path in (json, markdown):
        files.require_writable(path)
    entries = catalogue.chosen(kernels or [])
    profile = run.QUICK if quick else run.FULL
    with Progress(console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task("kernels", total=len(entries))

        def on_done(done: int, _total: int) -> None:
            progress.update(task, completed=done)

        results = run.run(entries, profile, device, on_done, workers)
    if json is not None:
        files.put(json, results.model_dump_json(indent=2) + "\n")
    if markdown is not None:
        files.put(markdown, selftest.page(results))
    if files.STDOUT not in (str(json), str(markdown)):
        selftest.show(terminal.console(), results)
    raise typer.Exit(results.exit_status)
