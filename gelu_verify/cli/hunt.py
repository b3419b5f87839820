"""``gelu-verify hunt KERNEL``: the worst inputs a search finds, where trying all is impossible."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from gelu_verify.cli import options


def command(
    kernel: Annotated[str, typer.Argument(metavar="KERNEL", help=options.KERNEL_HELP)],
    operator: options.Operator = None,
    formula: options.Formula = None,
    format: Annotated[
        str, typer.Option(help="fp64, fp32, bf16, fp16, fp8_e4m3fn or fp8_e5m2.")
    ] = "fp64",
    backward: Annotated[
        bool, typer.Option("--backward", help="Hunt the backward that autograd gives the kernel.")
    ] = False,
    device: options.Device = "cpu",
    seconds: Annotated[float, typer.Option(min=0.1, help="How long to search.")] = 30.0,
    timeout: Annotated[float, options.timeout("without an answer after which it is ended")] = 60.0,
    seed: Annotated[int, options.seed("the search")] = 0,
    save: Annotated[
        Path | None,
        typer.Option(
            help="Add what was found to this file of hard cases (JSON lines); "
            "checks replay reports/hard_cases.jsonl of the current folder."
        ),
    ] = None,
    json: Annotated[Path | None, options.output("the result")] = None,
) -> None:
    """Search for the inputs with the largest errors, by region.

    What is printed is the largest error found; a search proves no maximum.

    Example: gelu-verify hunt torch-erf --format fp64 --seconds 30
    """
    from gelu_verify import operators
    from gelu_verify.errors import UsageError
    from gelu_verify.hunt import hard_cases, isolated
    from gelu_verify.hunt.records import HuntRequest
    from gelu_verify.job import plan
    from gelu_verify.report import files

    jobs = plan(
        kernel, operator=operator, formula=formula, format_names=(format,), device=device, seed=seed
    )
    if jobs and jobs[0].operator not in operators.OPERATORS:
        raise UsageError(
            f"hunt: got {jobs[0].operator}, expected one of {', '.join(operators.OPERATORS)}. "
            "Use check, whose cases cover fused operators."
        )
    jobs = [job for job in jobs if (job.via is not None) == backward]
    if len(jobs) != 1:
        got = "--backward of a kernel that is no gelu" if backward else f"format {format!r}"
        raise UsageError(f"hunt: got {got}, expected one kernel in one format.")
    for path in (json, save):
        files.require_writable(path)
    if save is not None and save.exists():
        hard_cases.read(save)  # one that cannot be read is told now, not after the search
    request = HuntRequest(job=jobs[0], seconds=seconds)
    report = isolated.run(request, timeout, lambda _: None)
    if json is not None:
        files.put(json, report.model_dump_json(indent=2) + "\n")
    if str(json) != files.STDOUT:
        from gelu_verify.report import hunt, terminal

        hunt.show(terminal.console(), report.hunt)
    if save is not None:
        added = hard_cases.append(save, hard_cases.of(report))
        typer.echo(f"{added} new hard cases in {save}", err=True)
    raise typer.Exit(report.hunt.exit_status)
