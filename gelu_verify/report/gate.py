"""A gate as people read it: a table of 100 columns, then each failure with all that it needs."""

from __future__ import annotations

from dataclasses import dataclass

from rich.console import Console
from rich.table import Table
from rich.text import Text

from gelu_verify.gate.record import Against, Compared, GateResults
from gelu_verify.records import Finding, KernelResult, Status
from gelu_verify.report import markdown, rows
from gelu_verify.report.numbers import figure

HEADER = ("kernel", "operator", "format", "device", "max error", "contract", "verdict", "baseline")

#: Figures that got worse, in one message.
_MOST_FACTS = 4
#: How a verdict of a baseline is shown, and in which colour.
AGAINST = {
    Against.HELD: ("held", "green"),
    Against.IMPROVED: ("improved", "cyan"),
    Against.CHANGED: ("changed", "yellow"),
    Against.REGRESSED: ("REGRESSED", "bold red"),
    Against.ELSEWHERE: ("differs (other device)", "yellow"),
    Against.MISSING: ("MISSING", "bold red"),
    Against.DISAPPEARED: ("DISAPPEARED", "bold red"),
    Against.NOT_COMPARED: ("-", "dim"),
}


@dataclass(frozen=True)
class Failure:
    """One reason why a gate fails.

    what: kernel, operator, format, device. judge: the contract or baseline that says so. message:
    what is wrong and how far. input: where, decimal and bit pattern. tightest: what would have
    held. reproduce: a command line. target: the kernel as the command line names it.
    """

    what: str
    judge: str
    message: str
    input: str | None
    tightest: str | None
    reproduce: str | None
    target: str

    def lines(self) -> list[str]:
        """Return the failure without its headline, a fact a line."""
        facts = (
            ("at", self.input),
            ("by", self.judge),
            ("accuracy holds", self.tightest),
            ("reproduce", self.reproduce),
        )
        return [self.message, *(f"{name}: {text}" for name, text in facts if text)]


def failures(results: GateResults) -> list[Failure]:
    """Return all failures: contracts first, then baselines."""
    found = [of_contract(r, f) for r in results.broken for f in r.failures or r.findings]
    return found + of_baselines(results)


def of_baselines(results: GateResults) -> list[Failure]:
    """Return the failures of ``results.failed``, in order."""
    by_label = {_label(r): r for r in results.kernels}
    return [_of_baseline(c, by_label.get(_label_of(c))) for c in results.failed]


def _label(result: KernelResult) -> str:
    return f"{result.label} {result.operator} {result.format} {result.device}"


def _label_of(compared: Compared) -> str:
    return f"{compared.label} {compared.operator} {compared.key.format} {compared.device}"


def of_contract(result: KernelResult, finding: Finding) -> Failure:
    """Return the failure that a finding of a result is."""
    hard = "hard case, " if result.replayed else ""
    return Failure(
        what=_label(result),
        judge=f"contract {result.contract}",
        message=f"{hard}{finding.check.replace('_', ' ')}: {finding.message}",
        input=finding.input,
        tightest=_tightest(result),
        reproduce=finding.reproduce,
        target=result.target,
    )


def _of_baseline(compared: Compared, result: KernelResult | None) -> Failure:
    missing = compared.verdict is Against.MISSING
    return Failure(
        what=_label_of(compared),
        judge=f"baseline {compared.baseline}" if compared.baseline else "baseline, none",
        message=f"{compared.verdict.value}: {_told(compared)}",
        input=compared.input,
        tightest=_tightest(result) if result else None,
        reproduce=None if missing else compared.reproduce,
        target=result.target if result else "",
    )


def _told(compared: Compared) -> str:
    """Return the first things that got worse, and the first other fact: what changed at all."""
    worse = list(compared.facts[: compared.worse])
    more = len(worse) - _MOST_FACTS
    shown = worse[:_MOST_FACTS] + (
        [f"and {more} figures more (--json has all)"] if more > 0 else []
    )
    return "; ".join([*shown, *compared.facts[compared.worse :][:1]]) or compared.message


def _tightest(result: KernelResult) -> str | None:
    """Return the strictest contract that holds, and the least limit in ULP that would."""
    best = result.tightest
    if best is None:
        return None
    return f"{best.contract or 'no built-in contract'}; {figure(best.max_error_ulp)} ULP at most"


def table(results: GateResults) -> list[tuple[str, ...]]:
    """Return a row for each result, and for each baseline without one."""
    against = {_label_of(c): c for c in results.compared}
    lines: list[tuple[str, ...]] = []
    for result in results.kernels:
        compared = against.pop(_label(result), None)
        shown = AGAINST[compared.verdict][0] if compared else "-"
        mark = " *" if result.simulated else ""
        verdict = rows.LABELS[result.status]
        lines.append(
            (
                result.label + mark,
                result.operator,
                result.format,
                result.device,
                _error(result),
                result.contract,
                verdict,
                shown,
            )
        )
    for compared in against.values():
        shown, key = AGAINST[compared.verdict][0], compared.key
        lines.append((key.kernel, key.operator, key.format, "-", "-", "-", "-", shown))
    return lines


def _error(result: KernelResult) -> str:
    if result.accuracy:
        return f"{figure(result.accuracy.max_error_ulp)} ULP"
    return f"{figure(result.bound.max_ratio)} of bound" if result.bound else "-"


def measured(results: GateResults) -> str:
    """Return in one line what was run, from nothing kept from an earlier run."""
    swept = [r.accuracy for r in results.kernels if r.accuracy]
    inputs = sum(a.inputs for a in swept)
    whole = sum(a.exhaustive for a in swept)
    examples = sum(r.examples.count for r in results.kernels if r.examples)
    hard = sum(r.replayed for r in results.replayed)
    return (
        f"measured now: {inputs:,} inputs in {len(swept)} sweeps ({whole} of every bit pattern), "
        f"{hard:,} hard cases replayed first, {examples:,} examples; "
        f"profile {results.profile.value}, seed {results.seed}; {results.seconds:.1f} s"
    )


def verdict(results: GateResults) -> str:
    """Return the verdict of the whole run in one line."""
    status = results.exit_status
    if status == 3:
        return "nothing could be checked here"
    counts = [
        f"{len(results.kernels)} results",
        f"{len({_label(r) for r in results.broken})} break their contract or were not finished",
        f"{sum(c.verdict is Against.REGRESSED for c in results.compared)} regressed",
        f"{sum(c.verdict is Against.MISSING for c in results.compared)} without a baseline",
        f"{sum(c.verdict is Against.DISAPPEARED for c in results.compared)} disappeared",
    ]
    return f"gate {'FAILED' if status else 'passed'}: " + ", ".join(counts)


def notes(results: GateResults) -> list[str]:
    """Return what does not fail the gate and should be read."""
    said = []
    for c in results.compared:
        if c.verdict in (Against.IMPROVED, Against.CHANGED, Against.ELSEWHERE):
            said.append(f"{_label_of(c)}: {AGAINST[c.verdict][0]}: {c.message}")
    for warning in dict.fromkeys(w for c in results.compared for w in c.warnings):
        count = sum(warning in c.warnings for c in results.compared)
        said.append(f"warning: {warning} ({count} of {len(results.compared)})")
    absent = [_label(r) for r in results.kernels if r.status is Status.UNAVAILABLE]
    if absent:
        said.append(f"not run here: {', '.join(absent)}")
    return said


def show(console: Console, results: GateResults) -> None:
    """Print the table, what should be read, what failed, and the verdict."""
    shown = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    for name in HEADER:
        justify = "right" if name == "max error" else "left"
        shown.add_column(name, justify=justify, overflow="fold")  # type: ignore[arg-type]
    styles = {text: style for text, style in AGAINST.values()}
    for row in table(results):
        *cells, baseline = (Text(cell) for cell in row)
        baseline.stylize(styles[baseline.plain])
        shown.add_row(*cells, baseline)
    console.print(shown)
    if any(r.simulated for r in results.kernels):
        console.print(Text("* ran in Triton's CPU interpreter (simulated)", style="dim"))
    for line in notes(results):
        console.print(Text(line, style="yellow"))
    for failure in failures(results):
        console.print()
        console.print(Text(f"✗ {failure.what}", style="bold red"))
        for line in failure.lines():
            console.print(Text(f"  {line}"), soft_wrap=line.startswith("reproduce"))
    console.print()
    console.print(Text(measured(results), style="dim"))
    console.print(Text(verdict(results), style="bold"))


def as_markdown(results: GateResults) -> str:
    """Return the gate as a Markdown document."""
    escape = markdown.escape
    lines = [
        f"## gelu_verify: {escape(verdict(results))}",
        "",
        "| " + " | ".join(HEADER) + " |",
        "|" + " --- |" * len(HEADER),
        *("| " + " | ".join(escape(cell) for cell in row) + " |" for row in table(results)),
        "",
        escape(measured(results)),
    ]
    if said := notes(results):
        lines += ["", *(f"- {escape(line)}" for line in said)]
    for failure in failures(results):
        lines += ["", f"### {escape(failure.what)}", ""]
        # An indented block shows any text as it is.
        lines += [f"    {' '.join(line.split())}" for line in failure.lines()]
    return "\n".join(lines) + "\n"
