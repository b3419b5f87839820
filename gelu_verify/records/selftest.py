"""What a selftest found: the kill matrix, false alarms, and what the tests in use today say."""

from __future__ import annotations

from enum import StrEnum

from pydantic import Field

from gelu_verify.records.base import Finding, Record, Status
from gelu_verify.records.results import Environment

SELFTEST_SCHEMA_VERSION = 1
#: The usual test of which the catalogue says why it lets a defect pass.
NAMED_TEST = "1e-3"


class Fate(StrEnum):
    """What became of a kernel of the catalogue."""

    KILLED = "killed"
    OTHER_REASON = "other reason"
    SURVIVED = "survived"
    ACCEPTED = "accepted"
    FLAGGED = "flagged"
    NOT_RUN = "not run"

    @property
    def is_right(self) -> bool:
        """Whether that is what ought to have become of it, as far as it was run."""
        return self in (Fate.KILLED, Fate.ACCEPTED, Fate.NOT_RUN)


class UsualVerdict(Record):
    """What one test in use today says of a kernel on unit normals, measured."""

    test: str
    passes: bool
    figure: float | None = Field(None, description="what it measured; None without a number")
    failure: str = Field("", description="how the call ended, where it gave no result")


class Caught(Record):
    """A check that rejected a kernel."""

    check: str
    stated: bool = Field(description="the check and the words that the catalogue states")
    message: str
    input: str | None
    strength: float | None = Field(
        description="error over what is permitted, the largest of the check's findings"
    )


class CatalogueResult(Record):
    """What became of a kernel of the catalogue in one format."""

    name: str
    target: str
    operator: str
    via: str | None
    formula: str
    format: str
    summary: str
    fate: Fate
    usual: tuple[UsualVerdict, ...]
    seconds: float = Field(description="of all checks and seeds")

    @property
    def label(self) -> str:
        """Name, and how the backward was reached."""
        return f"{self.name} ({self.via})" if self.via else self.name


class DefectResult(CatalogueResult):
    """One defect in one format: a row of the kill matrix."""

    kind: str
    report: str
    unseen_because: str
    status: Status
    caught_by: tuple[Caught, ...]
    missing: tuple[str, ...] = Field(description="stated, but not what rejected it")


class SoundResult(CatalogueResult):
    """One sound kernel in one format, over all its seeds."""

    contract: str
    seeds: int = Field(description="runs; one where the sweep is every input, whatever the seed")
    alarms: tuple[Finding, ...]
    largest_ratio: float | None = Field(
        description="largest error over the contract's ULP limit or the bound, over all seeds; "
        "above 1 where an allowance explains it"
    )


class SelftestResults(Record):
    """The content of a selftest's JSON."""

    schema_version: int = SELFTEST_SCHEMA_VERSION
    environment: Environment
    profile: str
    device: str
    seconds: float = Field(description="wall time")
    defects: tuple[DefectResult, ...]
    sounds: tuple[SoundResult, ...]

    @property
    def exit_status(self) -> int:
        """0 all is as stated; 1 a survivor, another reason or a false alarm; 3 nothing was run."""
        rows: tuple[CatalogueResult, ...] = (*self.defects, *self.sounds)
        if all(row.fate is Fate.NOT_RUN for row in rows):
            return 3
        return 0 if all(row.fate.is_right for row in rows) and not self.misjudged else 1

    @property
    def misjudged(self) -> tuple[str, ...]:
        """Defects of which the catalogue says the opposite of what the usual test was seen to say.

        It says that the test passes (``unseen_because``) where it does in some format.
        """
        stated: dict[str, bool] = {}
        seen: dict[str, bool] = {}
        for row in self.defects:
            if row.fate is not Fate.NOT_RUN:
                stated[row.name] = bool(row.unseen_because)
                passes = any(v.test == NAMED_TEST and v.passes for v in row.usual)
                seen[row.name] = seen.get(row.name, False) or passes
        return tuple(name for name in stated if stated[name] != seen[name])
