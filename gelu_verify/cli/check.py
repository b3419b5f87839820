"""``gelu-verify check KERNEL...``: the truth about kernels, for people and as JSON."""

from __future__ import annotations

import contextlib
import sys
from pathlib import Path
from typing import Annotated

import typer

KERNEL_HELP = (
    "A registered name (gelu-verify list), module:function, path/to/file.py:function, "
    "or torch.ops.namespace.name."
)


def command(
    kernels: Annotated[
        list[str] | None, typer.Argument(metavar="KERNEL...", help=KERNEL_HELP)
    ] = None,
    operator: Annotated[
        str | None, typer.Option(help="What it computes: gelu or gelu_backward.")
    ] = None,
    formula: Annotated[
        str | None, typer.Option(help="Which GELU it claims: erf, tanh or sigmoid. [default: erf]")
    ] = None,
    format: Annotated[
        str | None,
        typer.Option(
            help="Comma-separated: fp64, fp32, bf16, fp16, fp8_e4m3fn, fp8_e5m2. "
            "[default: what it declares, else fp32,bf16,fp16]"
        ),
    ] = None,
    contract: Annotated[
        str | None,
        typer.Option(
            help="What it promises, strictest first: correctly_rounded, faithful, tail_accurate, "
            "saturating, cancelling, approximation. [default: what it declares, else cancelling]"
        ),
    ] = None,
    device: Annotated[str, typer.Option(help="cpu, cuda or cuda:N.")] = "cpu",
    sweep: Annotated[
        str,
        typer.Option(help="quick, standard or exhaustive; 8 and 16 bits are always exhaustive."),
    ] = "standard",
    seed: Annotated[int, typer.Option(help="Seed of the sampled inputs.")] = 0,
    input: Annotated[
        list[str] | None,
        typer.Option(
            help="Run only this input instead of the sweep, a pattern (0xC10A) or a decimal; "
            "dy,x for gelu_backward. May be repeated."
        ),
    ] = None,
    all_registered: Annotated[
        bool, typer.Option("--all", help="Check every registered kernel this machine can run.")
    ] = False,
    timeout: Annotated[
        float,
        typer.Option(
            min=0.1, help="Seconds the kernel may take in a single check before it is ended."
        ),
    ] = 60.0,
    in_process: Annotated[
        bool,
        typer.Option("--in-process", help="Run kernels in this process, for a debugger."),
    ] = False,
    json: Annotated[
        Path | None, typer.Option(help="Write the results to this file (- for stdout).")
    ] = None,
    markdown: Annotated[
        Path | None, typer.Option(help="Write a summary in Markdown to this file (- for stdout).")
    ] = None,
) -> None:
    """Check kernels: formula, accuracy, special values, saturation, invariants, routes.

    Example: gelu-verify check my_kernels.py:gelu --format bf16,fp32
    """
    from gelu_verify import session
    from gelu_verify.cli import progress
    from gelu_verify.errors import UsageError
    from gelu_verify.job import plan
    from gelu_verify.kernels.isolation import Limits
    from gelu_verify.kernels.registry import registered
    from gelu_verify.report import files

    if all_registered and kernels:
        raise UsageError(f"kernel: got {kernels[0]} and --all, expected one of them. Drop one.")
    names = list(registered()) if all_registered else kernels or []
    if not names:
        raise UsageError("kernel: got none, expected at least one. Name one, or give --all.")
    if json is not None and json == markdown:
        raise UsageError(f"output: got {json} for --json and --markdown, expected two files.")
    limits = Limits.default(timeout)
    for path in (json, markdown):
        files.require_writable(path)
    jobs = [
        job
        for name in names
        for job in plan(
            name,
            operator=operator,
            formula=formula,
            format_names=tuple(format.split(",")) if format else (),
            contract=contract,
            device=device,
            depth=sweep,
            seed=seed,
            replay=tuple(input or ()),
        )
    ]
    if not jobs:
        raise UsageError(
            "input: got the number of arguments of no operator of the kernel, "
            "expected x for gelu and dy,x for gelu_backward."
        )
    with progress.bar(jobs) as on_check:
        if in_process:
            # What a kernel prints must not get between the lines of JSON.
            with contextlib.redirect_stdout(sys.stderr):
                results = session.run_here(jobs, on_check)
        else:
            results = session.run(jobs, limits, on_check)
    files.write(results, json, markdown)
    if files.STDOUT not in (str(json), str(markdown)):
        from gelu_verify.report import terminal

        terminal.show(terminal.console(), results)
    raise typer.Exit(results.exit_status)
