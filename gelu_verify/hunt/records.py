"""What a hunt gives back. Loads no framework."""

from __future__ import annotations

from enum import StrEnum

from pydantic import Field

from gelu_verify.job import Job, identity
from gelu_verify.records import Environment, FusedPoint, Point, Record, ReferenceCertificate


class HuntStatus(StrEnum):
    """How a hunt ended; it judges no contract."""

    FINISHED = "finished"
    INTERRUPTED = "interrupted"
    CRASHED = "crashed"
    TIMED_OUT = "timed_out"
    UNAVAILABLE = "unavailable"


class Found(Record):
    """The largest error found in a region, or the first NaN where a number is due."""

    region: str
    kind: str = Field(description="class of failure; none for an ordinary error")
    point: Point
    relative_error: float = Field(description="|actual - exact| / |exact|; 1 is a loss of 100 %")
    reproduce: str | None = Field(description="command line that shows it again")


class FoundCase(Record):
    """The case of a fused operator with the largest error over bound of a part."""

    part: str = Field(description="result, or the gradient for an argument (dx)")
    check: str = Field(description="the check that shows it: bound, gradient")
    case: str = Field(description="dimensions, values, layouts and seed, as --case takes it")
    elements: int
    broken: int = Field(description="elements beyond their bound, or of the wrong kind")
    ratio: float = Field(description="error over bound; above 1 the bound is broken")
    point: FusedPoint | None = Field(description="the worst element")
    message: str | None = Field(description="what is broken, in a sentence; None if nothing is")
    reproduce: str | None = Field(description="command line that shows it again")


class HuntRequest(Record):
    """What a hunt is asked to do; travels to the child process as JSON."""

    job: Job
    cases: bool = Field(False, description="over cases of a fused operator, not over its inputs")
    seconds: float


class HuntResult(Record):
    """The largest errors that a search found. Others may be larger: a search proves no maximum."""

    name: str
    target: str
    operator: str
    via: str | None = None
    formula: str
    format: str
    device: str
    status: HuntStatus
    message: str | None = Field(None, description="why it did not finish")
    seed: int
    budget_seconds: float
    seconds: float = 0.0
    kernel_inputs: int = Field(0, description="inputs, or cases, the kernel was run on")
    measured: int = Field(0, description="of these, compared with the exact value")
    stages: dict[str, int] = Field(default_factory=dict, description="inputs measured by stage")
    found: tuple[Found, ...] = Field((), description="one a region, the largest error first")
    cases: tuple[FoundCase, ...] = Field(
        (), description="of a fused operator: one a part, the largest error over bound first"
    )
    certificate: ReferenceCertificate | None = Field(
        None, description="what proves the exact values of what was found; None before any was"
    )

    @classmethod
    def blank(cls, request: HuntRequest) -> HuntResult:
        """Return the result of a hunt before anything is known: crashed until proven otherwise."""
        return cls(
            **identity(request.job),
            status=HuntStatus.CRASHED,
            seed=request.job.seed,
            budget_seconds=request.seconds,
        )

    def ended(self, status: HuntStatus, message: str | None = None) -> HuntResult:
        """Return it with how the hunt ended, and why if it did not finish."""
        return self.model_copy(update={"status": status, "message": message})

    @property
    def exit_status(self) -> int:
        """0 finished, 1 crashed or timed out, 3 unavailable, 130 interrupted."""
        known = {HuntStatus.FINISHED: 0, HuntStatus.UNAVAILABLE: 3, HuntStatus.INTERRUPTED: 130}
        return known.get(self.status, 1)


class HuntReport(Record):
    """The content of the file of ``gelu-verify hunt --json``."""

    schema_version: int = 1
    environment: Environment
    hunt: HuntResult
