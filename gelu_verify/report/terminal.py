"""Results for the terminal: a block a kernel and format, then the summary table."""

from __future__ import annotations

from rich.console import Console, JustifyMethod
from rich.table import Table
from rich.text import Text

from gelu_verify.records import (
    PAIRS,
    Accuracy,
    Finding,
    FindingStatus,
    Fingerprint,
    KernelResult,
    Point,
    Results,
    Status,
)
from gelu_verify.report import fingerprint, rows
from gelu_verify.report.numbers import figure, short

_STYLES = {
    Status.PASSED: "bold green",
    Status.KNOWN_ISSUE: "bold yellow",
    Status.UNAVAILABLE: "dim",
    Status.FAILED: "bold red",
    Status.CRASHED: "bold red",
    Status.TIMED_OUT: "bold red",
}
#: The columns of the summary that 100 characters hold, with shorter headings.
_NARROW = {
    "kernel": "kernel",
    "format": "format",
    "formula": "formula",
    "deep tail": "deep",
    "tail": "tail",
    "shoulder": "shoul.",
    "centre": "centre",
    "positive": "pos.",
    "saturated": "satur.",
    "error/bound": "bound",
    "special values": "special",
    "verdict": "verdict",
}
_MARKS = {
    FindingStatus.PASSED: ("✓", "green"),
    FindingStatus.FAILED: ("✗", "red"),
    FindingStatus.KNOWN_ISSUE: ("!", "yellow"),
    FindingStatus.NOTED: ("·", "cyan"),
    FindingStatus.SKIPPED: ("-", "dim"),
}


def console() -> Console:
    """Return a console of the terminal's width, of 100 columns where there is no terminal."""
    found = Console(highlight=False)
    return found if found.is_terminal else Console(highlight=False, width=100)


def show(target: Console, results: Results) -> None:
    """Print every result and, where there are several, the summary."""
    for result in results.kernels:
        _block(target, result)
    if len(results.kernels) > 1:
        _summary(target, results)


def _block(console: Console, result: KernelResult) -> None:
    where = result.device + (", simulated" if result.simulated else "")
    console.print(
        Text.assemble(
            (result.label, "bold"),
            f"  {result.operator}  {result.format}  {where}  ",
            (rows.LABELS[result.status], _STYLES[result.status]),
            f"  {result.contract}",
        )
    )
    for name, text in _facts(result):
        console.print(Text.assemble((f"  {name:<12}", "dim"), text))
    if result.accuracy:
        console.print(_regions(result))
    if result.fingerprint:
        console.print(_evidence(result.fingerprint))
    for finding in result.findings:
        if finding.check != "saturation" or finding.status is FindingStatus.FAILED:
            _finding(console, finding)
    console.print()


def _facts(result: KernelResult) -> list[tuple[str, str]]:
    facts = []
    if result.formula_found:
        found = result.formula_found
        name = " or ".join(found.candidates) if found.found == "ambiguous" else found.found
        facts.append(("computes", found.fitted or name))
    if result.accuracy:
        a = result.accuracy
        facts.append(("max error", f"{figure(a.max_error_ulp)} ULP at {_shown(a.worst)}"))
        facts.append(
            ("mean error", f"{a.mean_error_ulp:+.3g} ULP signed, RMS {figure(a.rms_error_ulp)}")
        )
        facts.append(("inputs", f"{_inputs(a)}; {a.reference}"))
        if a.certificate:
            facts.append(("reference", rows.certificate(a.certificate)))
    if result.bound:
        facts += _bound_facts(result)
    if result.fingerprint:
        facts.append(("arithmetic", fingerprint.sentence(result.fingerprint)))
    if result.saturation:
        facts.append(("saturation", result.saturation.sentence))
    if result.special_values:
        facts.append(("special", rows.special(result)))
    if result.accuracy and result.accuracy.classes:
        classes = ", ".join(f"{c.name} {c.count:,}" for c in result.accuracy.classes)
        facts.append(("classes", classes))
    if result.accuracy and result.accuracy.allowances:
        used = ", ".join(
            f"{use.count:,} in {use.region} by {use.allowance} "
            f"(worst {figure(abs(use.worst.error_ulp))} ULP)"
            for use in result.accuracy.allowances
        )
        facts.append(("allowed", used))
    if result.speed:
        facts.append(("speed", rows.speed(result.speed)))
    if result.tightest and result.tightest.contract:
        facts.append(
            ("would hold", f"{result.tightest.contract}, the strictest contract that does")
        )
    return facts


def _bound_facts(result: KernelResult) -> list[tuple[str, str]]:
    found = result.bound
    assert found is not None
    shares = ", ".join(f"{name} {share:.0%}" for name, share in found.dominant.items())
    facts = [
        (
            "error/bound",
            f"at most {figure(found.max_ratio)}, 99.9 % below "
            f"{figure(found.quantiles['0.999'])}; {found.elements:,} elements, {found.cases} cases",
        ),
        ("bound", f"{found.arithmetic}; dominated by {shares}"),
    ]
    if found.worst:
        worst = found.worst
        facts.append(
            (
                "worst",
                f"{worst.case} at {list(worst.index)}: got {worst.actual}, "
                f"exact {worst.exact}, bound {worst.bound:.3g}",
            )
        )
    if result.gradients:
        ratios = ", ".join(f"d{g.argument} {figure(g.bound.max_ratio)}" for g in result.gradients)
        facts.append(("gradients", f"error/bound at most {ratios}"))
    return facts


def _inputs(a: Accuracy) -> str:
    if a.sweep == PAIRS:
        return f"{a.inputs:,} of {1 << 32:,} pairs"
    return f"{a.inputs:,}" + (f" (every bit pattern of {_swept(a.worst)})" if a.exhaustive else "")


def _swept(point: Point) -> str:
    return "gate" if "gate" in point.inputs else "x"


def _shown(point: Point) -> str:
    return f"{point.shown}: got {point.actual}, exact {point.exact}"


def _regions(result: KernelResult) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    assert result.accuracy is not None
    names = ", ".join(result.accuracy.worst.inputs)
    table.add_column("  region")
    for column in ("count", "max ULP", "mean ULP", f"worst {names}", "exact", "got"):
        table.add_column(column, justify="right")
    for region in result.accuracy.regions:
        if not region.count or region.worst is None:
            continue
        worst = region.worst
        table.add_row(
            f"  {region.region}",
            f"{region.count:,}",
            figure(region.max_error_ulp),
            f"{region.mean_error_ulp:+.3g}",
            ", ".join(short(number) for number in worst.inputs.values()),
            short(worst.exact),
            short(worst.actual),
        )
    return table


def _evidence(found: Fingerprint) -> Table:
    """Return the counts at each length, and below them what each arithmetic would give."""
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    table.add_column(f"  {fingerprint.HEADER[0]}")
    for column in fingerprint.HEADER[1:]:
        table.add_column(column, justify="right")
    for first, *rest in fingerprint.evidence(found):
        table.add_row(f"  {first}", *rest)
    for first, *rest in fingerprint.predictions(found):
        table.add_row(f"  {first} gives", *rest, style="dim")
    return table


def _finding(console: Console, finding: Finding) -> None:
    mark, style = _MARKS[finding.status]
    name = finding.check.replace("_", " ")
    console.print(Text.assemble("  ", (mark, style), f" {name}: {finding.message}"))
    if finding.link:
        console.print(Text(f"      known issue: {finding.link}"))
    if finding.status is FindingStatus.FAILED and finding.input:
        console.print(Text(f"      at {finding.input}"))
    if finding.reproduce and finding.status is FindingStatus.FAILED:
        # One line, never wrapped, so that it can be copied.
        console.print(Text(f"      {finding.reproduce}"), soft_wrap=True)


def _summary(console: Console, results: Results) -> None:
    table = Table(box=None, pad_edge=False, padding=(0, 1, 0, 0), header_style="bold")
    for name in rows.HEADER:
        if name in _NARROW:
            heading = _NARROW[name]
            numeric = name in (*rows.REGION_NAMES, "error/bound")
            justify: JustifyMethod = "right" if numeric else "left"
            table.add_column(heading, justify=justify, overflow="fold")
    for result in results.kernels:
        # Text, not str: a kernel's name is no markup.
        cells = [
            Text(cell)
            for name, cell in zip(rows.HEADER, rows.row(result), strict=True)
            if name in _NARROW
        ]
        cells[-1] = Text(rows.LABELS[result.status], style=_STYLES[result.status])
        table.add_row(*cells)
    console.print(table)
    if any(k.simulated for k in results.kernels):
        console.print(Text("* ran in Triton's CPU interpreter (simulated)", style="dim"))
    for line in rows.certificates(results):
        console.print(Text(f"reference {line}", style="dim"))
    counts = ", ".join(
        f"{sum(k.status is s for k in results.kernels)} {rows.LABELS[s]}"
        for s in Status
        if any(k.status is s for k in results.kernels)
    )
    console.print(counts)
