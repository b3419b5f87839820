"""The result of one kernel, and the content of ``results.json``."""

from __future__ import annotations

from pydantic import Field, model_validator

from gelu_verify.errors import ContractBroken
from gelu_verify.records.base import Finding, FindingStatus, Record, Status
from gelu_verify.records.comparable import Comparable
from gelu_verify.records.elementwise import (
    Accuracy,
    Examples,
    FormulaFound,
    Saturation,
    SpecialValue,
    Tightest,
)
from gelu_verify.records.fused import BatchDifference, BoundAccuracy, Fingerprint, GradientAccuracy
from gelu_verify.records.speed import Speed

SCHEMA_VERSION = 1


class KernelResult(Record):
    """Everything learnt about one kernel, operator, formula and format on one device."""

    name: str
    target: str
    operator: str
    via: str | None = Field(None, description="autograd where the backward is the kernel's own")
    formula: str
    format: str
    device: str
    replayed: int = Field(0, description="inputs that were run instead of the sweep; 0: the sweep")
    simulated: bool = Field(False, description="ran in Triton's CPU interpreter")
    status: Status
    contract: str
    accuracy: Accuracy | None = None
    bound: BoundAccuracy | None = Field(None, description="of a fused operator")
    gradients: tuple[GradientAccuracy, ...] = Field((), description="of a fused operator")
    batches: tuple[BatchDifference, ...] = Field(
        (), description="batch invariance of a fused operator, a row a batch size"
    )
    fingerprint: Fingerprint | None = Field(None, description="of a fused operator")
    formula_found: FormulaFound | None = None
    saturation: Saturation | None = None
    special_values: tuple[SpecialValue, ...] = ()
    examples: Examples | None = Field(None, description="inputs drawn beside the sweep")
    speed: Speed | None = Field(None, description="kept where it is asked for")
    comparable: Comparable | None = Field(None, description="kept where a gate asks for it")
    findings: tuple[Finding, ...] = ()
    tightest: Tightest | None = None
    seconds: float = Field(0.0, description="wall time of all checks")
    kernel_seconds: float = Field(0.0, description="wall time inside the kernel")

    @model_validator(mode="after")
    def _passing_needs_evidence(self) -> KernelResult:
        evidence = (self.accuracy, self.bound, self.special_values)
        if self.status.holds and not any(evidence):
            raise ValueError("a result that holds needs figures of at least one input")
        return self

    @property
    def failures(self) -> tuple[Finding, ...]:
        """The findings that break the contract."""
        return tuple(f for f in self.findings if f.status is FindingStatus.FAILED)

    @property
    def label(self) -> str:
        """Name, and how the backward was reached."""
        return f"{self.name} ({self.via})" if self.via else self.name


class Environment(Record):
    """Where and with what the results were made."""

    gelu_verify: str
    commit: str | None
    dirty: bool | None
    date: str = Field(description="UTC, ISO 8601")
    python: str
    platform: str
    processor: str
    instruction_set: str | None = Field(None, description="torch's CPU capability")
    device: str | None = Field(None, description="accelerator, if one was used")
    driver: str | None = None
    libraries: dict[str, str]
    interpreter_canaries: dict[str, bool] | None = Field(
        None, description="what Triton's CPU interpreter gets right, where kernels ran in it"
    )

    @property
    def versions(self) -> dict[str, str]:
        """Versions of this package and of the libraries, as stored cases and inputs carry them."""
        return {"gelu_verify": self.gelu_verify, **self.libraries}


class Results(Record):
    """The content of ``results.json``."""

    schema_version: int = SCHEMA_VERSION
    environment: Environment
    kernels: tuple[KernelResult, ...]

    @property
    def exit_status(self) -> int:
        """0 all held, 1 something failed, 3 nothing could be checked."""
        checked = [k for k in self.kernels if k.status is not Status.UNAVAILABLE]
        if not checked:
            return 3
        return 0 if all(k.status.holds for k in checked) else 1

    def raise_if_failed(self) -> Results:
        """Return self, or raise :class:`ContractBroken` naming each failure on a line."""
        if self.exit_status == 0:
            return self
        lines = [
            f"{k.label} {k.operator} {k.format}: {k.status.value}: {finding.message}"
            for k in self.kernels
            if not k.status.holds
            for finding in k.failures or k.findings
        ]
        raise ContractBroken("\n".join(lines) or "nothing could be checked: no result at all")
