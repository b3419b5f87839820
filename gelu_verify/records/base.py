"""What all records share: immutability, statuses, findings."""

from __future__ import annotations

from enum import StrEnum

from pydantic import BaseModel, ConfigDict, Field


class Status(StrEnum):
    """The verdict on one kernel, operator and format."""

    PASSED = "passed"
    FAILED = "failed"
    KNOWN_ISSUE = "known_issue"
    CRASHED = "crashed"
    TIMED_OUT = "timed_out"
    UNAVAILABLE = "unavailable"

    @property
    def holds(self) -> bool:
        """Whether nothing is wrong that was not declared."""
        return self in (Status.PASSED, Status.KNOWN_ISSUE)


class FindingStatus(StrEnum):
    """What one check says: ``noted`` is a fact worth reading that breaks no promise."""

    PASSED = "passed"
    FAILED = "failed"
    KNOWN_ISSUE = "known_issue"
    NOTED = "noted"
    SKIPPED = "skipped"


class Record(BaseModel):
    """Base of all records: immutable, unknown fields refused, NaN and infinity written as text."""

    model_config = ConfigDict(frozen=True, extra="forbid", ser_json_inf_nan="strings")


class Finding(Record):
    """One thing a check saw, with the input that shows it."""

    check: str
    status: FindingStatus
    message: str
    input: str | None = Field(None, description="input that shows it, decimal and bit pattern")
    reproduce: str | None = Field(None, description="a command line that shows it again")
    link: str | None = Field(None, description="public report, for a known issue")
    strength: float | None = Field(
        None,
        description="error over what is permitted at that input, where the finding has a size",
    )
