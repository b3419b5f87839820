"""``gelu-verify gate-alarms KERNEL``: how often the gate is wrong, and how little it still sees."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from gelu_verify.cli import options


def command(
    kernel: Annotated[str, typer.Argument(metavar="KERNEL", help=options.KERNEL_HELP)],
    operator: options.Operator = None,
    formula: options.Formula = None,
    format: Annotated[str, typer.Option(help="fp64, fp32, bf16 or fp16.")] = "fp32",
    device: options.Device = "cpu",
    seeds: Annotated[
        int, typer.Option(min=1, help="Decisions to make, each with two seeds of its own.")
    ] = 1000,
    seed: Annotated[int, options.seed("the first decision")] = 0,
    no_power: Annotated[
        bool, typer.Option("--no-power", help="Leave out the power curve.")
    ] = False,
    json: Annotated[Path | None, options.output("the report")] = None,
    markdown: Annotated[Path | None, options.output("the report as Markdown")] = None,
) -> None:
    """Measure the gate's decision from samples: false alarms, and the smallest fault it sees.

    The kernel is compared with itself, so that every alarm is a false one. It runs in this process.

    Example: gelu-verify gate-alarms torch-erf --format fp32 --seeds 1000
    """
    from gelu_verify.errors import UsageError
    from gelu_verify.job import plan
    from gelu_verify.report import alarms, files
    from gelu_verify.statistics import run

    for path in (json, markdown):
        files.require_writable(path)
    jobs = plan(
        kernel, operator=operator, formula=formula, format_names=(format,), device=device, seed=seed
    )
    jobs = [job for job in jobs if job.via is None]
    if len(jobs) != 1:
        raise UsageError(f"gate-alarms: got format {format!r}, expected one format.")
    found = run.gate_alarms(jobs[0], seeds, with_power=not no_power)
    if json is not None:
        files.put(json, found.model_dump_json(indent=2) + "\n")
    if markdown is not None:
        files.put(markdown, alarms.document(found))
    if files.STDOUT not in (str(json), str(markdown)):
        typer.echo(alarms.document(found) if markdown is None else alarms.sentence(found.alarms))
