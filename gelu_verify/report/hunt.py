"""A hunt as people read it in the terminal."""

from __future__ import annotations

import math

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from gelu_verify.hunt.records import Found, FoundCase, HuntResult, HuntStatus
from gelu_verify.report.numbers import figure, short
from gelu_verify.report.rows import certificate


def show(console: Console, hunt: HuntResult) -> None:
    """Print what was found by region, and what the search can and cannot claim."""
    via = f" ({hunt.via})" if hunt.via else ""
    status = hunt.status.value.replace("_", " ").upper()
    title = f"{hunt.name}{via}  {hunt.operator}  {hunt.formula}  {hunt.format}  {hunt.device}"
    console.print(escape(f"{title}  {status}"), highlight=False)
    if hunt.message:
        console.print(escape(f"  {hunt.message}"), highlight=False)
    if hunt.found:
        worst = hunt.found[0]
        shown = ", ".join(
            f"{k} = {v} ({worst.point.bits[k]})" for k, v in worst.point.inputs.items()
        )
        console.print(escape(f"  largest error found: {_size(worst)} at {shown}"), highlight=False)
        console.print(_table(hunt.found))
        if hunt.certificate:
            console.print(f"  reference {certificate(hunt.certificate)}", highlight=False)
        if worst.reproduce:
            console.print(escape(f"  {worst.reproduce}"), highlight=False, soft_wrap=True)
    if hunt.cases:
        _show_cases(console, hunt.cases)
    if hunt.status is not HuntStatus.UNAVAILABLE:
        what = "cases" if hunt.cases else "inputs"
        stages = ", ".join(f"{name} {n:,}" for name, n in hunt.stages.items() if n)
        console.print(
            f"  {hunt.measured:,} {what} measured ({stages or 'none'}), "
            f"{hunt.kernel_inputs:,} run, {hunt.seconds:.1f} s, seed {hunt.seed}. "
            "A search: errors elsewhere may be larger.",
            highlight=False,
        )


def _show_cases(console: Console, cases: tuple[FoundCase, ...]) -> None:
    """Print the worst case of every part, and the command that shows the first again."""
    for one in cases:
        broken = f", {one.broken:,} elements beyond it" if one.broken else ""
        text = f"  {one.part}: {figure(one.ratio)} of the bound{broken}: case {one.case}"
        console.print(escape(text), highlight=False, soft_wrap=True)
    worst = cases[0]
    if worst.message:
        console.print(escape(f"  {worst.part}: {worst.message}"), highlight=False)
    if worst.reproduce:
        console.print(escape(f"  {worst.reproduce}"), highlight=False, soft_wrap=True)


def _size(found: Found) -> str:
    if found.kind in ("nan_for_number", "number_for_nan"):
        return found.kind.replace("_", " ")
    return f"{figure(abs(found.point.error_ulp))} ULP ({_loss(found)} of the exact value)"


def _loss(found: Found) -> str:
    lost = found.relative_error
    return "-" if math.isnan(lost) else f"{100 * lost:.3g} %"


def _table(found: tuple[Found, ...]) -> Table:
    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False)
    table.add_column("  region")
    for name in (*found[0].point.inputs, "exact", "got", "error ULP", "lost"):
        table.add_column(name, justify="right", no_wrap=True)
    for one in found:
        table.add_row(
            f"  {one.region}",
            *(short(text) for text in one.point.inputs.values()),
            short(one.point.exact),
            short(one.point.actual),
            figure(abs(one.point.error_ulp)),
            _loss(one),
        )
    return table
