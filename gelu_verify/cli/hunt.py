"""``gelu-verify hunt KERNEL``: the worst inputs a search finds, where trying all is impossible."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from gelu_verify.cli import options

if TYPE_CHECKING:
    from gelu_verify.job import Job


def command(
    kernel: Annotated[str, typer.Argument(metavar="KERNEL", help=options.KERNEL_HELP)],
    operator: options.Operator = None,
    formula: options.Formula = None,
    format: Annotated[
        str | None,
        typer.Option(
            help="fp64, fp32, bf16, fp16, fp8_e4m3fn or fp8_e5m2. "
            "\\[default: fp64; of cases the first that the kernel declares]"
        ),
    ] = None,
    cases: Annotated[
        bool,
        typer.Option(
            "--cases",
            help="Of bias_gelu or geglu: hunt cases (sizes, values, layouts) and not inputs. "
            "Always so of the other fused operators.",
        ),
    ] = False,
    backward: Annotated[
        bool, typer.Option("--backward", help="Hunt the backward that autograd gives the kernel.")
    ] = False,
    device: options.Device = "cpu",
    seconds: Annotated[float, typer.Option(min=0.1, help="How long to search.")] = 30.0,
    timeout: Annotated[float, options.timeout("the kernel may take without an answer")] = 60.0,
    seed: Annotated[int, options.seed("the search")] = 0,
    save: Annotated[
        Path | None,
        typer.Option(
            help="Add what was found to this file of hard cases (JSON lines); checks replay "
            "reports/hard_cases.jsonl of the current folder, and reports/fused_cases.jsonl for "
            "cases of fused operators, of which those that break a bound are added."
        ),
    ] = None,
    json: Annotated[Path | None, options.output("the result")] = None,
) -> None:
    """Search for the inputs with the largest errors, by region.

    Of a fused operator: for the cases (sizes, values, layouts) with the largest error over bound,
    of the result and of every gradient. What is printed is the largest error found; a search proves
    no maximum. Ctrl-C ends it early, with what was found.

    Examples: gelu-verify hunt torch-erf --format fp64 --seconds 30
    gelu-verify hunt my_kernels.py:linear_gelu --operator linear_gelu --format bf16
    """
    from gelu_verify.hunt import hard_cases, isolated
    from gelu_verify.hunt.cases import stored as found_cases
    from gelu_verify.hunt.records import HuntRequest
    from gelu_verify.inputs.problems import stored
    from gelu_verify.kernels.listener import Limits
    from gelu_verify.report import files

    limits = Limits.default(timeout)
    job, over_cases = _job(kernel, operator, formula, format, device, seed, backward, cases)
    for path in (json, save):
        files.require_writable(path)
    if save is not None and save.exists():
        # One that cannot be read is told now, not after the search.
        stored.read(save) if over_cases else hard_cases.read(save)
    request = HuntRequest(job=job, cases=over_cases, seconds=seconds)
    report = isolated.run(request, limits, lambda _: None)
    if json is not None:
        files.put(json, report.model_dump_json(indent=2) + "\n")
    if str(json) != files.STDOUT:
        from gelu_verify.report import hunt, terminal

        hunt.show(terminal.console(), report.hunt)
    if save is not None:
        if over_cases:
            added = stored.append(save, found_cases.of(report))
        else:
            added = hard_cases.append(save, hard_cases.of(report))
        typer.echo(f"{added} new hard cases in {save}", err=True)
    raise typer.Exit(report.hunt.exit_status)


def _job(
    kernel: str,
    operator: str | None,
    formula: str | None,
    format: str | None,
    device: str,
    seed: int,
    backward: bool,
    cases: bool,
) -> tuple[Job, bool]:
    """Return what to hunt, and whether over cases; a usage error for what is not one kernel."""
    from gelu_verify.errors import UsageError
    from gelu_verify.job import plan
    from gelu_verify.kernels import registry
    from gelu_verify.operators import OPERATORS, require

    spec = registry.find(kernel)
    chosen = require(operator or spec.operator)
    over_cases = cases or chosen not in OPERATORS
    name = format or (spec.formats[0] if over_cases else "fp64")
    jobs = plan(
        spec, operator=operator, formula=formula, format_names=(name,), device=device, seed=seed
    )
    if cases and not jobs[0].is_fused:
        raise UsageError(f"hunt: got --cases of {chosen}, expected a fused operator. Drop --cases.")
    if backward and over_cases:
        raise UsageError(
            "hunt: got --backward of cases, expected none: gradients are hunted too. "
            "Drop --backward."
        )
    jobs = [job for job in jobs if (job.via is not None) == backward]
    if len(jobs) != 1:
        got = "--backward of a kernel that is no gelu" if backward else f"format {name!r}"
        raise UsageError(f"hunt: got {got}, expected one kernel in one format.")
    return jobs[0], over_cases
