"""The kill matrix for people: terminal, Markdown page, and the short table of the README."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text

from gelu_verify.records import (
    NAMED_TEST,
    CatalogueResult,
    Caught,
    DefectResult,
    Fate,
    SelftestResults,
    UsualVerdict,
)
from gelu_verify.report.markdown import escape, link
from gelu_verify.report.numbers import figure

#: What a usual test is called in tables, by its name in the record.
USUAL = {
    "assert_close": "`assert_close` defaults",
    "1e-2": "atol = rtol = 1e-2",
    "1e-3": "atol = rtol = 1e-3",
    "2x eager": "≤ 2 × eager's error",
    "cosine": "cosine ≥ 0.999",
    "PCC": "PCC ≥ 0.999",
    "SQNR": "SQNR ≥ 25 dB",
}


def show(console: Console, results: SelftestResults) -> None:
    """Print the matrix, a row a defect and format, then what is not as it ought to be."""
    table = Table(box=None, pad_edge=False, padding=(0, 1, 0, 0), header_style="bold")
    for name in ("defect", "format", "caught by", "strength", "s", "usual tests pass"):
        table.add_column(name, overflow="fold")
    for row in results.defects:
        checks = Text(", ".join(part.check for part in row.caught_by if part.stated))
        if not row.fate.is_right:
            checks = Text(row.fate.value, style="bold red")
        passing = sum(verdict.passes for verdict in row.usual)
        cells = (row.label, row.format, strength(row.caught_by), f"{row.seconds:.1f}")
        table.add_row(*cells[:2], checks, *cells[2:], f"{passing} of {len(row.usual)}")
    console.print(table)
    for line in _wrong(results):
        console.print(Text(line, style="red"), soft_wrap=True)
    console.print(conclusion(results))


def page(results: SelftestResults) -> str:
    """Return the whole matrix as a Markdown document."""
    where = results.environment
    libraries = ", ".join(f"{name} {version}" for name, version in where.libraries.items())
    machine = where.device or where.processor
    lines = [
        "# The harness on kernels with known faults",
        "",
        f"`gelu-verify selftest`, {where.date}, {machine}, Python {where.python}, {libraries}; "
        f"profile {results.profile}, {results.seconds:.0f} s.",
        "",
        f"{conclusion(results)} A row is a defect in one format. *Strength* is error over what "
        "the contract (or the derived bound) permits there; without one the fault is a kind, not a "
        "size. The last columns are the tests in use today on unit normals: ✓ lets the defect "
        "pass.",
        "",
        *table(
            (
                *("defect", "kind", "format", "report", "rejected by", "also", "strength", "s"),
                *USUAL.values(),
            ),
            (
                (
                    *(f"`{row.label}`", row.kind, row.format, link(row.report)),
                    *(_checks(row, stated=True), _checks(row, stated=False)),
                    *(strength(row.caught_by), f"{row.seconds:.1f}"),
                    *(_mark(verdict) for verdict in row.usual),
                )
                for row in results.defects
            ),
        ),
        "",
        *_problems(results),
        "## Sound kernels",
        "",
        "None may be flagged. *Largest* is the largest error over the contract's ULP limit (or the "
        "bound); above 1 an allowance of the contract explains it. ✗ is a false alarm of a usual "
        "test.",
        "",
        *table(
            ("kernel", "format", "contract", "seeds", "alarms", "largest", "s", *USUAL.values()),
            (
                (
                    *(f"`{row.label}`", row.format, row.contract, str(row.seeds)),
                    *(str(len(row.alarms)), figure(row.largest_ratio), f"{row.seconds:.1f}"),
                    *(_mark(verdict) for verdict in row.usual),
                )
                for row in results.sounds
            ),
        ),
    ]
    return "\n".join(lines) + "\n"


def summary(results: SelftestResults) -> str:
    """Return the short table: by kind, how many defects each test lets through."""
    kinds = dict.fromkeys(row.kind for row in results.defects)
    header = ("kind of fault", "defects", "gelu_verify", *USUAL.values())
    rows = [
        (kind, *_missed([row for row in results.defects if row.kind == kind])) for kind in kinds
    ]
    rows.append(("all", *_missed(results.defects)))
    sounds = {row.name for row in results.sounds}
    alarms = [str(len({r.name for r in results.sounds if r.fate is Fate.FLAGGED}))]
    alarms += [str(len({r.name for r in results.sounds if not _passes(r, test)})) for test in USUAL]
    rows.append(("sound kernels flagged", str(len(sounds)), *alarms))
    return "\n".join(table(header, rows))


def table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """Return the lines of a Markdown table; cells are Markdown already."""
    return [
        "| " + " | ".join(header) + " |",
        "|" + " --- |" * len(header),
        *("| " + " | ".join(row) + " |" for row in rows),
    ]


def _missed(rows: Sequence[DefectResult]) -> list[str]:
    """Return how many defects there are, and how many each test lets through in some format."""
    names = {row.name for row in rows}
    survivors = {row.name for row in rows if row.fate is Fate.SURVIVED}
    missed = [len({row.name for row in rows if _passes(row, test)}) for test in USUAL]
    return [str(len(names)), str(len(survivors)), *map(str, missed)]


def _passes(row: CatalogueResult, test: str) -> bool:
    return any(verdict.test == test and verdict.passes for verdict in row.usual)


def conclusion(results: SelftestResults) -> str:
    """Return how many kernels there are, and how many are not as they ought to be."""
    defects = {row.name for row in results.defects}
    sounds = {row.name for row in results.sounds}
    parts = []
    rows: tuple[CatalogueResult, ...] = (*results.defects, *results.sounds)
    for fate, text in (
        (Fate.SURVIVED, "survive"),
        (Fate.OTHER_REASON, "rejected for another reason"),
        (Fate.FLAGGED, "sound kernels flagged"),
        (Fate.NOT_RUN, "not run here"),
    ):
        names = {row.name for row in rows if row.fate is fate}
        if names or fate is not Fate.NOT_RUN:
            parts.append(f"{len(names)} {text}")
    return f"{len(defects)} defects, {len(sounds)} sound kernels: {', '.join(parts)}."


def _problems(results: SelftestResults) -> list[str]:
    found = [f"- {escape(line)}" for line in _wrong(results)]
    return ["## Not as it ought to be", "", *found, ""] if found else []


def _wrong(results: SelftestResults) -> list[str]:
    """Return a line for each thing that is not as the catalogue states."""
    lines = []
    for row in results.defects:
        if not row.fate.is_right:
            got = "; ".join(f"{part.check}: {part.message}" for part in row.caught_by) or "nothing"
            about = f"{row.label} {row.format}: {row.fate.value}"
            lines.append(f"{about}: stated {', '.join(row.missing)}; got {got}")
    lines += [
        f"{name}: the catalogue states the opposite of what {USUAL[NAMED_TEST]} says"
        for name in results.misjudged
    ]
    for sound in results.sounds:
        about = f"{sound.label} {sound.format}: {sound.fate.value}"
        lines += [f"{about}: {f.check}: {f.message} ({f.reproduce})" for f in sound.alarms]
    return lines


def _checks(row: DefectResult, *, stated: bool) -> str:
    if not row.fate.is_right and stated:
        return f"**{row.fate.value}**"
    if row.fate is Fate.NOT_RUN:
        return "not run here" if stated else "-"
    names = [part.check for part in row.caught_by if part.stated is stated]
    return escape(", ".join(names)) or "-"


def strength(caught: tuple[Caught, ...]) -> str:
    """Return the largest strength of what rejected a kernel."""
    largest = max((part.strength for part in caught if part.strength is not None), default=None)
    # Beyond that a fault is total, and how small the exact value was is all that the figure says.
    return "> 1e6" if largest is not None and largest > 1e6 else figure(largest)


def _mark(verdict: UsualVerdict) -> str:
    return "✓" if verdict.passes else "✗"
