"""A convergence record as the page of trainings shows it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from gelu_verify.convergence.records import Convergence, Verdict
from gelu_verify.report import convergence
from gelu_verify.report.site.figures import convergence as drawn
from gelu_verify.report.site.figures.figure import Figure

#: The colour of a verdict, by the status that the pages of kernels show so.
_STATUSES = {
    Verdict.EQUIVALENT: "passed",
    Verdict.NOT_ENOUGH_SEEDS: "unavailable",
    Verdict.DIFFERENT: "failed",
    Verdict.CRASHED: "crashed",
    Verdict.TIMED_OUT: "timed_out",
}


@dataclass(frozen=True)
class Shown:
    """A record, the name of its file, and its number on the page."""

    found: Convergence
    source: str
    number: int

    @property
    def title(self) -> str:
        """Kernel, operator, formula, format, device and task."""
        return convergence.title(self.found)

    @property
    def verdict(self) -> str:
        """The verdict in words."""
        return self.found.verdict.value.replace("_", " ")

    @property
    def status(self) -> str:
        """The status whose colour the verdict has."""
        return _STATUSES[self.found.verdict]

    @property
    def where(self) -> str:
        """The machine, and what computed."""
        return convergence.machine(self.found)

    @property
    def facts(self) -> list[str]:
        """What the tables do not hold."""
        return convergence.facts(self.found)

    @property
    def tables(self) -> list[tuple[tuple[str, ...], list[tuple[str, ...]]]]:
        """Header and rows of the endpoints and of the drift."""
        return convergence.tables(self.found, first=0)

    @property
    def figures(self) -> list[Figure]:
        """The figures, with keys of their own."""
        return drawn.figures(self.found, self.number)


def shown(records: Sequence[tuple[str, Convergence]]) -> list[Shown]:
    """Return records with the names of their files as the page shows them."""
    return [Shown(found, source, number) for number, (source, found) in enumerate(records, 1)]
