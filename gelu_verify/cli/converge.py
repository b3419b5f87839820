"""``gelu-verify converge KERNEL``: does training with the kernel still work."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from gelu_verify.cli import options
from gelu_verify.convergence import catalogue

if TYPE_CHECKING:
    from gelu_verify.convergence.experiment import Experiment, OnRun
    from gelu_verify.convergence.records import Convergence
    from gelu_verify.kernels.listener import Limits


def command(
    kernel: Annotated[str, typer.Argument(metavar="KERNEL", help=options.KERNEL_HELP)],
    operator: options.Operator = None,
    formula: options.Formula = None,
    format: Annotated[
        str,
        typer.Option(help="fp32, fp64; bf16 and fp16: under autocast, with weights in fp32."),
    ] = "fp32",
    backward: Annotated[
        str | None,
        typer.Option(metavar="KERNEL", help="Kernel (dy, x) of the gradient, of one without."),
    ] = None,
    task: Annotated[
        str | None,
        typer.Option(
            help=f"{', '.join(catalogue.TASKS)}, or your own: module:name or "
            "path/to/file.py:name of a Task. \\[default: the first with room for the kernel]"
        ),
    ] = None,
    device: options.Device = "cpu",
    seeds: Annotated[int, typer.Option(min=3, max=99_999, help="Seeds to train from.")] = 8,
    steps: Annotated[
        int | None, typer.Option(min=10, help="Steps a run. \\[default: the task's own]")
    ] = None,
    alpha: Annotated[
        float, typer.Option(min=1e-6, max=0.2, help="Probability of either wrong verdict.")
    ] = 0.05,
    ledger: Annotated[
        Path | None,
        typer.Option(help="File that keeps finished runs. \\[default: in the user's cache]"),
    ] = None,
    timeout: Annotated[
        float, options.timeout("that the kernel's arm may take between two points of its curve")
    ] = 120.0,
    in_process: Annotated[
        bool, typer.Option("--in-process", help="Run the kernel in this process, for debugging.")
    ] = False,
    json: Annotated[Path | None, options.output("the record")] = None,
    markdown: Annotated[Path | None, options.output("the record as Markdown")] = None,
) -> None:
    """Train with the kernel and with its exact operator, paired, and decide with statistics.

    The kernel stands where the task's model has its operator, or one that contains it: each
    operator has a task.

    Exit status: 0 equivalent; 1 different, or the kernel crashed or timed out; 3 not enough seeds
    to decide. A run that was killed goes on where it was, with the same result. Trains on one
    thread unless OMP_NUM_THREADS says otherwise.

    Examples: gelu-verify converge torch-erf
    gelu-verify converge triton-geglu --seeds 4
    gelu-verify converge triton-erf --backward triton-erf-backward --task python-gpt --device cuda
    """
    from gelu_verify.convergence.experiment import Experiment
    from gelu_verify.job import plan
    from gelu_verify.kernels import registry
    from gelu_verify.kernels.listener import Limits
    from gelu_verify.report import convergence, files, terminal

    for path in (json, markdown):
        files.require_writable(path)
    limits = Limits.default(timeout)
    job = plan(kernel, operator=operator, formula=formula, format_names=(format,), device=device)[0]
    chosen = task or catalogue.default(job.operator)
    experiment = Experiment(
        job=job,
        task=chosen,
        seeds=tuple(range(seeds)),
        steps=steps,
        backward=registry.find(backward) if backward else None,
        alpha=alpha,
        ledger=ledger,
    )
    with _bar(f"{job.spec.name} {chosen}") as on_run:
        found = _here(experiment, on_run) if in_process else _isolated(experiment, limits, on_run)
    if json is not None:
        files.put(json, found.model_dump_json(indent=1) + "\n")
    if markdown is not None:
        files.put(markdown, convergence.as_markdown(found))
    if files.STDOUT not in (str(json), str(markdown)):
        convergence.show(terminal.console(), found)
    raise typer.Exit(found.verdict.exit_status)


def _isolated(experiment: Experiment, limits: Limits, on_run: OnRun) -> Convergence:
    from gelu_verify.convergence import isolated

    return isolated.run(experiment, limits, on_run)


def _here(experiment: Experiment, on_run: OnRun) -> Convergence:
    import os

    if experiment.job.device == "cpu":
        os.environ.setdefault("TRITON_INTERPRET", "1")
    from gelu_verify.convergence import run

    return run.run(experiment, on_run)


@contextmanager
def _bar(title: str) -> Iterator[OnRun]:
    """Yield what the experiment tells how far it is; a bar with the time left on a terminal."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn
    from rich.progress import TimeRemainingColumn as Left

    console = Console(stderr=True)
    columns = (TextColumn("{task.description}", markup=False), BarColumn(bar_width=24))
    with Progress(
        *columns, MofNCompleteColumn(), Left(), console=console, transient=True,
        disable=not console.is_terminal,
    ) as progress:  # fmt: skip
        bar = progress.add_task(title, total=None)

        def on_run(done: float, total: int, what: str) -> None:
            progress.update(bar, completed=done, total=total, description=f"{title}: {what}")

        yield on_run
