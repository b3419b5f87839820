"""``gelu-verify check KERNEL...``: the truth about kernels, for people and as JSON."""

from __future__ import annotations

import contextlib
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer

from gelu_verify.cli import options
from gelu_verify.cli.wanted import Wanted

if TYPE_CHECKING:
    from gelu_verify.campaign.run import Plan
    from gelu_verify.job import Job
    from gelu_verify.kernels.listener import Limits
    from gelu_verify.rewriting.run import Request


def command(
    kernels: Annotated[
        list[str] | None, typer.Argument(metavar="KERNEL...", help=options.KERNEL_HELP)
    ] = None,
    operator: options.Operator = None,
    formula: options.Formula = None,
    format: Annotated[
        str | None,
        typer.Option(
            help="Comma-separated: fp64, fp32, bf16, fp16, fp8_e4m3fn, fp8_e5m2. "
            "\\[default: what it declares, else fp32,bf16,fp16]"
        ),
    ] = None,
    contract: options.Contract = None,
    device: options.Device = "cpu",
    sweep: Annotated[
        str,
        typer.Option(
            help="quick, standard or exhaustive (fp32: all 2^32 inputs; two arguments of 16 "
            "bits, also a backward: all 2^32 pairs); of one argument "
            "8 and 16 bits are always exhaustive."
        ),
    ] = "standard",
    seed: Annotated[int, options.seed("the sampled inputs")] = 0,
    input: Annotated[
        list[str] | None,
        typer.Option(
            help="Run only this input instead of the sweep, a pattern (0xC10A) or a decimal; "
            "dy,x for gelu_backward, x,bias and gate,up likewise. May be repeated."
        ),
    ] = None,
    case: Annotated[
        list[str] | None,
        typer.Option(
            help="Run only this case of a fused operator instead of its list, as findings write "
            "it (m=33,k=64,n=17,seed=3). May be repeated."
        ),
    ] = None,
    all_registered: Annotated[
        bool,
        typer.Option(
            "--all",
            help="Check every registered kernel that can run here; with --operator, those of it; "
            "with --format, those that declare it.",
        ),
    ] = False,
    timeout: Annotated[
        float,
        options.timeout("the kernel may take in a single check before it is ended"),
    ] = 60.0,
    in_process: Annotated[
        bool,
        typer.Option("--in-process", help="Run kernels in this process, for a debugger."),
    ] = False,
    ledger: Annotated[
        Path | None,
        typer.Option(
            help="File that keeps what an exhaustive sweep has done, to go on later; that "
            "of a backward through autograd is FILE-autograd. \\[default: in the cache folder]"
        ),
    ] = None,
    workers: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Processes of an exhaustive sweep, or kernels checked at a time. "
            "\\[default: one a core or GPU]",
        ),
    ] = None,
    scheduler: Annotated[
        str | None,
        typer.Option(
            metavar="ADDRESS",
            help="Dask scheduler whose workers run an exhaustive sweep (tcp://host:8786).",
        ),
    ] = None,
    rewrite: Annotated[
        str | None,
        typer.Option(
            metavar="MODULE",
            help="KERNEL is a function that returns a model and its example inputs: replace "
            "Linear, bias or LayerNorm before a GELU by the fused operators of this module "
            "(reference_kernels.triton_fused, or a .py file) and verify the model.",
        ),
    ] = None,
    save_cases: Annotated[
        Path | None,
        typer.Option(
            help="Add the cases that a fused kernel failed to this file (JSON lines); "
            "checks run those of reports/fused_cases.jsonl of the current folder first."
        ),
    ] = None,
    speed: Annotated[
        bool,
        typer.Option(
            "--speed",
            help="Time calls with large arguments after the checks. A simulated kernel and a "
            "backward through autograd are left out.",
        ),
    ] = False,
    json: Annotated[Path | None, options.output("the results")] = None,
    markdown: Annotated[Path | None, options.output("a summary in Markdown")] = None,
    html: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Write the results as a site to this folder."),
    ] = None,
) -> None:
    """Check kernels: formula, accuracy, special values, saturation, invariants, routes.

    Every result says what proves its exact values: certified, partly certified, analysis only (on a
    GPU), uncertified, or the oracle itself.

    Example: gelu-verify check my_kernels.py:gelu --format bf16,fp32
    """
    from gelu_verify import session
    from gelu_verify.cli import progress, selection
    from gelu_verify.errors import UsageError
    from gelu_verify.job import plan
    from gelu_verify.kernels.listener import Limits
    from gelu_verify.report import files

    if all_registered and kernels:
        raise UsageError(f"kernel: got {kernels[0]} and --all, expected one of them. Drop one.")
    if not all_registered and not kernels:
        raise UsageError("kernel: got none, expected at least one. Name one, or give --all.")
    limits = Limits.default(timeout)
    format_names = tuple(format.split(",")) if format else ()
    selected = (
        selection.declared(operator, format_names)
        if all_registered
        else [(name, format_names) for name in kernels or []]
    )
    files.require_writable(save_cases)
    wanted = Wanted(json, markdown, html)
    wanted.require_writable()
    if rewrite is not None:
        _require_no_kernel_options(
            operator=operator,
            formula=formula,
            sweep=None if sweep == "standard" else sweep,
            seed=seed,
            input=input,
            case=case,
            ledger=ledger,
            workers=workers,
            scheduler=scheduler,
            save_cases=save_cases,
            speed=speed,
        )
        from gelu_verify.rewriting.run import plan as plan_models

        names = [name for name, _ in selected]
        models = plan_models(names, rewrite, format_names, contract, device)
        _verify_models(models, None if in_process else limits, wanted)
    jobs = [
        job
        for name, own_formats in selected
        for job in plan(
            name,
            operator=operator,
            formula=formula,
            format_names=own_formats,
            contract=contract,
            device=device,
            depth=sweep,
            seed=seed,
            replay=tuple(input or ()),
            cases=tuple(case or ()),
            speed=speed,
        )
    ]
    if not jobs:
        raise UsageError(
            "input: got the number of arguments of no operator of the kernel, "
            "expected x for gelu and two for the others, as dy,x for gelu_backward."
        )
    if save_cases is not None:
        _require_saving(jobs, save_cases)
    how = _plan(jobs, ledger, workers, scheduler, timeout, in_process)
    with progress.bar(jobs) as bar:
        if in_process:
            # What a kernel prints must not get between the lines of JSON.
            with contextlib.redirect_stdout(sys.stderr):
                results = session.run_here(jobs, bar, plan=how, on_patterns=bar.on_patterns)
        else:
            processes = session.at_a_time(jobs, workers)
            limits = session.shared(limits, processes)
            results = session.run(jobs, limits, bar, how, bar.on_patterns, processes)
    wanted.deliver(results)
    if save_cases is not None:
        from gelu_verify.inputs.problems import stored

        added = stored.append(save_cases, stored.of(results))
        typer.echo(f"{added} new cases in {save_cases}", err=True)
    raise typer.Exit(results.exit_status)


def _require_no_kernel_options(**given: object) -> None:
    """Raise for an option that means nothing where a model is verified."""
    from gelu_verify.errors import UsageError

    for name, value in given.items():
        if value:
            option = name.replace("_", "-")
            raise UsageError(f"{option}: got {value} and --rewrite, expected one. Drop --{option}.")


def _verify_models(models: list[Request], limits: Limits | None, wanted: Wanted) -> NoReturn:
    """Verify rewritten models instead of kernels, and exit; limits: None for in this process."""
    from gelu_verify.records import Results
    from gelu_verify.rewriting import isolated, run

    if limits is None:
        with contextlib.redirect_stdout(sys.stderr):
            done = [run.run_here(model) for model in models]
        kernels = tuple(result for results in done for result in results.kernels)
        results = Results(environment=done[0].environment, kernels=kernels)
    else:
        results = isolated.run(models, limits)
    wanted.deliver(results)
    raise typer.Exit(results.exit_status)


def _require_saving(jobs: list[Job], path: Path) -> None:
    """Raise for a file of cases that nothing can be added to: told now, not after the checks."""
    from gelu_verify.errors import UsageError
    from gelu_verify.inputs.problems import stored

    if not any(job.is_fused for job in jobs):
        raise UsageError(
            f"save-cases: got {path}, expected a kernel of a fused operator. Drop --save-cases."
        )
    if path.exists():
        stored.read(path)


def _plan(
    jobs: list[Job],
    ledger: Path | None,
    workers: int | None,
    scheduler: str | None,
    timeout: float,
    in_process: bool,
) -> Plan:
    """Return how campaigns run; an option of theirs where there is none is wrong usage."""
    from gelu_verify.campaign.checked import is_swept
    from gelu_verify.campaign.run import Plan
    from gelu_verify.errors import UsageError

    given = {"ledger": ledger, "workers": workers, "scheduler": scheduler}
    if not in_process and len({job.spec.name for job in jobs}) > 1:
        del given["workers"]  # of several kernels it says how many are checked at a time
    for name, value in given.items():
        if value is None:
            continue
        if in_process or not any(is_swept(job) for job in jobs):
            raise UsageError(
                f"{name}: got {value}, expected --sweep exhaustive of fp32, or of pairs, in "
                f"processes of its own. Drop --{name}."
            )
    if scheduler is not None and workers is not None:
        raise UsageError(f"workers: got {workers} and --scheduler, expected one of them. Drop one.")
    if ledger is not None and len({(job.spec.name, job.format) for job in jobs}) > 1:
        raise UsageError(
            f"ledger: got {ledger} for several kernels or formats, expected one of each. "
            "Name one kernel and one --format."
        )
    seconds = max(timeout, Plan.seconds)
    return Plan(ledger=ledger, workers=workers, scheduler=scheduler, seconds=seconds)
