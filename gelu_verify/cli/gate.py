"""``gelu-verify gate``: one verdict for CI, and why."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from gelu_verify.cli import options, settings

if TYPE_CHECKING:
    from gelu_verify.config.settings import Settings
    from gelu_verify.gate.decide import Again
    from gelu_verify.gate.record import GateResults


def command(
    config: settings.Config = settings.DEFAULT_PATH,
    kernel: settings.Kernels = None,
    operator: settings.Operator = None,
    formula: settings.Formula = None,
    formats: settings.Formats = None,
    contract: settings.Contract = None,
    devices: settings.Devices = None,
    sweep: settings.Sweep = None,
    seed: settings.Seed = None,
    profile: settings.Profile = None,
    examples: settings.Examples = None,
    timeout: settings.Timeout = None,
    workers: settings.Workers = None,
    baselines: settings.Baselines = None,
    junit: Annotated[Path | None, options.output("JUnit XML")] = None,
    markdown: Annotated[Path | None, options.output("a summary in Markdown")] = None,
    json: Annotated[Path | None, options.output("everything")] = None,
    save: Annotated[
        Path | None,
        typer.Option(
            help="Add the examples that failed to this file of hard cases (JSON lines); "
            "gates replay reports/hard_cases.jsonl of the current folder first."
        ),
    ] = None,
) -> None:
    """Hold the configured kernels to their contracts and to their baselines.

    A contract is a ceiling that no baseline can bless; a baseline is a ratchet.

    Example: gelu-verify gate --junit gate.xml
    """
    from gelu_verify.cli import progress
    from gelu_verify.gate import plan, run
    from gelu_verify.hunt import hard_cases
    from gelu_verify.report import files

    outputs = [path for path in (junit, markdown, json) if path is not None]
    _require_apart(outputs)
    for path in (*outputs, save):
        files.require_writable(path)
    given = {
        "operator": operator,
        "formula": formula,
        "formats": formats,
        "contract": contract,
        "devices": devices,
        "sweep": sweep,
        "seed": seed,
        "profile": profile,
        "examples": examples,
        "timeout": timeout,
        "workers": workers,
        "baselines": baselines,
    }
    declared, chosen = settings.read(config, kernel, given)
    if save is not None and save.exists():
        hard_cases.read(save)  # one that cannot be read is told now, not after the run
    chosen = chosen.model_copy(update={"seed": plan.fresh_seed(chosen)})
    if chosen.seed:
        typer.echo(f"profile {chosen.profile.value}, seed {chosen.seed}", err=True)
    jobs = plan.jobs(chosen)
    with progress.bar(jobs) as bar:
        results = run.run(jobs, chosen, plan.keys(declared), _again(config, given, chosen), bar)
    _deliver(results, junit, markdown, json, config)
    if save is not None:
        added = hard_cases.append(save, hard_cases.of_examples(results))
        typer.echo(f"{added} new hard cases in {save}", err=True)
    raise typer.Exit(results.exit_status)


def _again(config: Path, given: dict[str, str | None], chosen: Settings) -> Again:
    """Return what gives the command of this run for one kernel, with the seed that it drew."""
    words = ["gelu-verify", "gate"]
    if config != settings.DEFAULT_PATH:
        words += ["--config", str(config)]
    seed = str(chosen.seed) if chosen.seed else None
    for name, text in (given | {"seed": seed, "formats": None}).items():
        words += [f"--{name}", text] if text is not None else []
    return lambda key: shlex.join([*words, "--kernel", key.kernel, "--formats", key.format])


def _require_apart(outputs: list[Path]) -> None:
    from gelu_verify.errors import UsageError

    for path in outputs:
        if outputs.count(path) > 1:
            raise UsageError(f"output: got {path} twice, expected a file each.")


def _deliver(
    results: GateResults,
    junit_file: Path | None,
    markdown_file: Path | None,
    json_file: Path | None,
    config: Path,
) -> None:
    """Write what was asked for; show the gate unless stdout is taken; tell GitHub where it runs."""
    from gelu_verify.report import files, gate, github, terminal

    if junit_file is not None:
        from gelu_verify.report import junit

        files.put(junit_file, junit.text(results))
    if markdown_file is not None:
        files.put(markdown_file, gate.as_markdown(results))
    if json_file is not None:
        files.put(json_file, results.model_dump_json(indent=2) + "\n")
    taken = files.STDOUT in (str(junit_file), str(markdown_file), str(json_file))
    if not taken:
        gate.show(terminal.console(), results)
    if github.is_here():
        for line in github.commands(results, config):
            typer.echo(line, err=taken)
    github.append_summary(gate.as_markdown(results))
