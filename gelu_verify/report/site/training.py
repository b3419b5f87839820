"""A convergence record as the site shows it: a row of the table of trainings, a page of its own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from gelu_verify.convergence.records import Convergence, Verdict
from gelu_verify.report import convergence
from gelu_verify.report.site.entry import page_name
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
    """A record, the name of its file, and that of its page, without ``.html``."""

    found: Convergence
    source: str
    slug: str

    @property
    def title(self) -> str:
        """Kernel, operator, formula, format, device and task."""
        return convergence.title(self.found)

    @property
    def operator(self) -> str:
        """What the kernel computes."""
        return self.found.operator

    @property
    def format(self) -> str:
        """What it was trained in: of autocast, what that computes in."""
        return self.found.format

    @property
    def task(self) -> str:
        """What was trained."""
        return self.found.task

    @property
    def device(self) -> str:
        """The device as a person names it."""
        where = self.found.environment
        return (where.device if self.found.device.startswith("cuda") else None) or "CPU"

    @property
    def worst(self) -> tuple[str, float] | None:
        """The endpoint with the largest mean difference in margins, and that."""
        sizes = [(abs(e.mean) / e.margin, e.name) for e in self.found.endpoints if e.margin]
        return max(sizes)[::-1] if sizes else None

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
        """The figures of its page."""
        return drawn.figures(self.found)


def shown(records: Sequence[tuple[str, Convergence]]) -> list[Shown]:
    """Return records with the names of their files as the site shows them."""
    taken: set[str] = set()
    return [Shown(found, source, _page(found, taken)) for source, found in records]


def _page(found: Convergence, taken: set[str]) -> str:
    what = (found.name, found.operator, found.formula, found.format, found.device, found.task)
    return page_name(what, "", taken)
