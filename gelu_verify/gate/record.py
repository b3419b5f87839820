"""What a gate found: results with a verdict of the baseline beside that of the contract."""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum

from pydantic import Field

from gelu_verify.baseline import Key
from gelu_verify.config.settings import Profile, Settings
from gelu_verify.errors import ContractBroken
from gelu_verify.records import KernelResult, Record, Results


class Against(StrEnum):
    """The verdict of a baseline on one result."""

    HELD = "held"
    IMPROVED = "improved"
    CHANGED = "changed"
    REGRESSED = "regressed"
    ELSEWHERE = "elsewhere"
    MISSING = "missing"
    DISAPPEARED = "disappeared"
    NOT_COMPARED = "not_compared"

    @property
    def fails(self) -> bool:
        """Whether the gate fails for it."""
        return self in (Against.REGRESSED, Against.MISSING, Against.DISAPPEARED)


class Compared(Record):
    """One result against its baseline."""

    key: Key
    operator: str = Field(description="gelu_backward where the baseline is of gelu and autograd")
    via: str | None = None
    device: str
    device_class: str
    verdict: Against
    message: str = Field(description="one line that says what is different and how much")
    facts: tuple[str, ...] = Field((), description="every difference, the gravest first")
    worse: int = Field(0, description="how many of these, the first ones, are for the worse")
    warnings: tuple[str, ...] = Field((), description="why the two are not alike")
    input: str | None = Field(None, description="input that shows it, decimal and bit pattern")
    baseline: str | None = Field(None, description="path of the file")
    reproduce: str | None = None

    @property
    def label(self) -> str:
        """Kernel, and how the backward was reached."""
        return f"{self.key.kernel} ({self.via})" if self.via else self.key.kernel


class GateResults(Results):
    """The content of a gate's JSON file: that of ``results.json`` and the baselines' verdicts."""

    profile: Profile
    seed: int
    seconds: float = Field(description="wall time of the run")
    replayed: tuple[KernelResult, ...] = Field(
        (), description="inputs that once failed, run before the sweeps"
    )
    compared: tuple[Compared, ...] = ()

    @classmethod
    def of(
        cls, results: Results, settings: Settings, compared: Iterable[Compared], seconds: float
    ) -> GateResults:
        """Return what a run of these settings measured, and the verdicts of its baselines."""
        return cls(
            environment=results.environment,
            kernels=tuple(r for r in results.kernels if not r.replayed),
            profile=settings.profile,
            seed=settings.seed,
            seconds=seconds,
            replayed=tuple(r for r in results.kernels if r.replayed),
            compared=tuple(compared),
        )

    def raise_if_failed(self) -> GateResults:
        """Return self, or raise :class:`ContractBroken` with all that a failure has to say."""
        from gelu_verify.report import gate

        if self.exit_status == 0:
            return self
        told = ["\n  ".join((f.what, *f.lines())) for f in gate.failures(self)]
        raise ContractBroken("\n".join(told) or "nothing could be checked: no result at all")

    @property
    def broken(self) -> tuple[KernelResult, ...]:
        """Results that break their contract, or of kernels that crashed; hard cases first."""
        every = (*self.replayed, *self.kernels)
        return tuple(r for r in every if not (r.status.holds or r.status == "unavailable"))

    @property
    def failed(self) -> tuple[Compared, ...]:
        """Comparisons that fail the gate."""
        return tuple(c for c in self.compared if c.verdict.fails)

    @property
    def exit_status(self) -> int:
        """0 all held, 1 a contract or a baseline was not kept, 3 nothing could be checked."""
        status = super().exit_status
        if status == 3 and not self.failed:
            return 3
        return 1 if self.broken or self.failed else 0
