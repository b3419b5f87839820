"""Results as Markdown: the summary table, then what failed."""

from __future__ import annotations

from gelu_verify.records import FindingStatus, Results
from gelu_verify.report import fingerprint
from gelu_verify.report.rows import HEADER, certificates, row, speed


def summary(results: Results) -> str:
    """Return the summary of a run as a Markdown document."""
    where = results.environment
    libraries = ", ".join(f"{name} {version}" for name, version in where.libraries.items())
    machine = where.device or where.processor
    if where.instruction_set:
        machine += f" ({where.instruction_set})"
    lines = [
        "# gelu_verify results",
        "",
        f"{where.date}, {machine}, Python {where.python}, {libraries}.",
        "Columns of regions: largest error in ULP of the format.",
        "",
        *table(results),
        "",
    ]
    if any(k.simulated for k in results.kernels):
        lines += ["\\* ran in Triton's CPU interpreter (simulated).", ""]
    if proven := certificates(results):
        lines += ["Exact values:", "", *(f"- {escape(line)}" for line in proven), ""]
    lines += _fingerprints(results)
    lines += _speeds(results)
    lines += _findings(results)
    return "\n".join(lines) + "\n"


def table(results: Results) -> list[str]:
    """Return the lines of the summary table."""
    return [
        "| " + " | ".join(HEADER) + " |",
        "|" + " --- |" * len(HEADER),
        *("| " + " | ".join(escape(cell) for cell in row(k)) + " |" for k in results.kernels),
    ]


def _fingerprints(results: Results) -> list[str]:
    """Return what each fused kernel multiplies and adds in, with the counts that show it."""
    header = ("kernel", "format", *fingerprint.HEADER)
    rows, sentences = [], []
    for k in results.kernels:
        if k.fingerprint:
            about = fingerprint.sentence(k.fingerprint)
            sentences.append(f"- {escape(k.label)}, {k.format}: {escape(about)}")
            rows += [(k.label, k.format, *row) for row in fingerprint.evidence(k.fingerprint)]
    if not rows:
        return []
    return [
        "## Arithmetic, from the errors",
        "",
        *sentences,
        "",
        "| " + " | ".join(header) + " |",
        "|" + " --- |" * len(header),
        *("| " + " | ".join(escape(cell) for cell in row) + " |" for row in rows),
        "",
    ]


def _speeds(results: Results) -> list[str]:
    """Return how long calls took, where that was measured."""
    found = [(k, k.speed) for k in results.kernels if k.speed]
    if not found:
        return []
    methods = dict.fromkeys(escape(timed.method) + "." for _, timed in found)
    return [
        "## Speed",
        "",
        "Median of calls, with the times that a tenth and nine tenths of them keep:",
        *methods,
        "",
        *(f"- {escape(k.label)}, {k.format}: {escape(speed(timed))}" for k, timed in found),
        "",
    ]


def _findings(results: Results) -> list[str]:
    lines = []
    for wanted, title in (
        (FindingStatus.FAILED, "Failures"),
        (FindingStatus.KNOWN_ISSUE, "Known issues"),
    ):
        section = [
            f"- {escape(k.label)}, {k.operator}, {k.format}: {escape(f.check)}: "
            f"{escape(f.message)}"
            + (f" ({f.link})" if f.link else "")
            + (f"\n  `{f.reproduce}`" if f.reproduce else "")
            for k in results.kernels
            for f in k.findings
            if f.status is wanted
        ]
        if section:
            lines += [f"## {title}", "", *section, ""]
    return lines


def escape(text: str) -> str:
    """Return text that Markdown shows as it is, inside a table cell too."""
    for mark in ("\\", "|", "*", "_", "`", "<", ">", "[", "]"):
        text = text.replace(mark, "\\" + mark)
    return text.replace("\n", " ")


def link(report: str) -> str:
    """Return a link to a public report, ``owner/repository#number``; a dash for none."""
    if not report:
        return "-"
    repository, _, number = report.partition("#")
    return f"[{escape(report)}](https://github.com/{repository}/issues/{number})"
