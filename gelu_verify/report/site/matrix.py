"""The kill matrix of a selftest: what rejected each defect, and what the tests in use say."""

from __future__ import annotations

from dataclasses import dataclass

from gelu_verify.records import CatalogueResult, DefectResult, SelftestResults
from gelu_verify.report import selftest


@dataclass(frozen=True)
class Line:
    """A defect or a sound kernel in one format.

    verdict: what became of it in a word; told: checks that rejected it, or false alarms. usual:
    for each test in use today, whether it passes, None where it did not run.
    """

    label: str
    format: str
    summary: str
    right: bool
    verdict: str
    told: str
    strength: str
    usual: tuple[bool | None, ...]


def tests() -> list[str]:
    """Return the tests in use today, as the columns are called."""
    names = (name.replace("`", "") for name in selftest.USUAL.values())
    return [name.replace("-", "\N{NON-BREAKING HYPHEN}") for name in names]


def conclusion(results: SelftestResults) -> str:
    """Return what the whole run says, in a sentence."""
    return selftest.conclusion(results)


def defects(results: SelftestResults) -> list[tuple[str, list[Line]]]:
    """Return the defects by kind of fault, in the order of the record."""
    kinds = dict.fromkeys(row.kind for row in results.defects)
    return [(kind, [_defect(r) for r in results.defects if r.kind == kind]) for kind in kinds]


def sounds(results: SelftestResults) -> list[Line]:
    """Return the sound kernels."""
    return [
        _line(row, "; ".join(f"{a.check}: {a.message}" for a in row.alarms), "")
        for row in results.sounds
    ]


def _defect(row: DefectResult) -> Line:
    stated = [part.check.replace("_", " ") for part in row.caught_by if part.stated]
    return _line(row, ", ".join(dict.fromkeys(stated)), selftest.strength(row.caught_by))


def _line(row: CatalogueResult, told: str, strength: str) -> Line:
    passes = {verdict.test: verdict.passes for verdict in row.usual}
    usual = tuple(passes.get(test) for test in selftest.USUAL)
    verdict = row.fate.value
    return Line(
        row.label, row.format, row.summary, row.fate.is_right, verdict, told, strength, usual
    )
