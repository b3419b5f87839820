"""A convergence record as people read it: in the terminal and as Markdown."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from gelu_verify.convergence.records import Agreement, Convergence, Verdict
from gelu_verify.report import markdown
from gelu_verify.report.numbers import figure

_Rows = list[tuple[str, ...]]


def show(console: Console, found: Convergence) -> None:
    """Print verdict, reasons, endpoints and drift."""
    console.print(escape(f"{title(found)}  {verdict(found)}"), highlight=False)
    for line in (*found.reasons, *found.harmless, *facts(found)):
        console.print(escape(f"  {line}"), highlight=False)
    last = max((d.step for d in found.drift), default=0)
    for header, rows in tables(found, first=last):
        console.print(_table(header, rows))


def as_markdown(found: Convergence) -> str:
    """Return the record as a Markdown document."""
    lines = [
        f"# {markdown.escape(title(found))}: {verdict(found)}",
        "",
        f"{found.environment.date}, {machine(found)}. "
        f"{len(found.seeds)} seeds, alpha {found.alpha:g}; {found.recipe}.",
        f"Data: {markdown.escape(found.data)} (digest {found.data_digest}).",
        "",
        *(f"- {markdown.escape(line)}" for line in found.reasons),
        "",
    ]
    if found.harmless:
        lines += ["## What does not matter here", ""]
        lines += [*(markdown.escape(line) for line in found.harmless), ""]
    lines += ["## Figures", "", *(f"- {markdown.escape(line)}" for line in facts(found)), ""]
    for header, rows in tables(found, first=0):
        lines += ["| " + " | ".join(header) + " |", "|" + " --- |" * len(header)]
        lines += ["| " + " | ".join(markdown.escape(cell) for cell in row) + " |" for row in rows]
        lines.append("")
    return "\n".join(lines)


def title(found: Convergence) -> str:
    """Return kernel, operator, formula, format, device and task in a line."""
    parts = (found.name, found.operator, found.formula, found.format, found.device, found.task)
    return "  ".join(parts)


def machine(found: Convergence) -> str:
    """Return where and in what it was trained."""
    where = found.environment
    place = where.device or f"{where.processor} ({where.instruction_set})"
    versions = ", ".join(f"{name} {where.libraries.get(name, '?')}" for name in ("torch", "triton"))
    return f"{place}, {versions}, autocast {found.autocast or 'off'}"


def verdict(found: Convergence) -> str:
    """Return the verdict in words, capitals."""
    return found.verdict.value.replace("_", " ").upper()


def facts(found: Convergence) -> list[str]:
    """Return what the tables do not hold: inference, divergence, what could have been seen."""
    lines = []
    swapped = [run.agreement for run in found.runs if run.agreement is not None]
    if swapped:
        lines.append(_inference(swapped))
    if any(found.diverged.values()):
        counts = ", ".join(f"{arm.value} {n}" for arm, n in found.diverged.items() if n)
        lines.append(f"without a finite loss to the end: {counts}")
    held = [e.name for e in found.endpoints if e.p_equivalent < found.alpha]
    if held and found.verdict is not Verdict.EQUIVALENT:
        lines.append(f"within their margins all the same: {', '.join(held)}")
    seen = ", ".join(f"{e.name} {figure(e.smallest_seen)}" for e in found.endpoints)
    if seen:
        lines.append(f"effects that would have been called different with 90 % power: {seen}")
    if found.runs:
        lines.append(f"{found.trained} of {len(found.runs)} runs trained in {found.seconds:.0f} s")
    return lines


def _inference(swapped: Sequence[Agreement]) -> str:
    count = sum(one.examples for one in swapped)
    agree = sum(one.top1_agree for one in swapped)
    own = sum(one.top1_agree_reference for one in swapped)
    largest = max(one.largest_logit_error for one in swapped)
    return (
        f"inference in {len(swapped)} trained models: class of the exact model at {agree:,} of "
        f"{count:,} positions (reference {own:,}); largest logit error {figure(largest)}, "
        f"logits have a root mean square of {figure(swapped[0].rms_logit)}"
    )


def tables(found: Convergence, first: int) -> list[tuple[tuple[str, ...], _Rows]]:
    """Return header and rows of the endpoints, and of the drift from step ``first`` on."""
    endpoints: _Rows = [
        (
            e.name,
            f"{e.mean:+.2e}",
            f"{e.low:+.2e} to {e.high:+.2e}",
            f"±{e.margin:.2e}",
            f"{e.p_equivalent:.1e}",
            f"{e.p_different:.1e}",
            f"{e.power:.2f}",
            f"{e.scatter:.1e}",
            f"{e.noise_rms:.1e}",
        )
        for e in found.endpoints
    ]
    header: tuple[str, ...] = (
        *("endpoint", "difference", f"{100 - 200 * found.alpha:.0f} % interval", "margin"),
        *("p equal", "p different", "power", "scatter", "1 ULP"),
    )
    drift: _Rows = [
        (
            d.arm.value,
            str(d.step),
            f"{d.logits:.1e}",
            f"{d.gradient_norm:+.1e}",
            f"{1 - d.gradient_cosine:.1e}",
            f"{d.gradient_error:.1e}",
        )
        for d in found.drift
        if d.step >= first
    ]
    drifting: tuple[str, ...]
    drifting = ("arm", "step", "logits", "gradient norm", "1 − cosine", "gradient at own weights")
    return [(h, rows) for h, rows in ((header, endpoints), (drifting, drift)) if rows]


def _table(header: tuple[str, ...], rows: _Rows) -> Table:
    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False)
    table.add_column(f"  {header[0]}")
    for name in header[1:]:
        table.add_column(name, justify="right")
    for row in rows:
        table.add_row(f"  {row[0]}", *row[1:])
    return table
