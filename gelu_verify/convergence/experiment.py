"""What is asked: a kernel, a task, seeds. Travels to the child process as JSON; no framework."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field

from gelu_verify import provenance
from gelu_verify.convergence.records import Convergence, Verdict
from gelu_verify.errors import GeluVerifyError
from gelu_verify.job import Job
from gelu_verify.kernels.spec import KernelSpec

#: Called with the runs done (the last in part), the runs in all, and what is trained.
OnRun = Callable[[float, int, str], None]


class Experiment(BaseModel):
    """A kernel (and one of its gradient), a task, seeds.

    job: the kernel's, with operator, formula, format and device resolved.
    task: its name; steps: of a run, None for the task's own.
    ledger: file that keeps finished runs, None for one in the user's cache.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", ser_json_inf_nan="strings")

    job: Job
    task: str
    seeds: tuple[int, ...]
    steps: int | None = Field(None, ge=10)
    backward: KernelSpec | None = None
    alpha: float = 0.05
    ledger: Path | None = None

    @property
    def autocast(self) -> str | None:
        """The format that torch.autocast computes in, with weights in fp32; None for none."""
        return self.job.format if self.job.format in ("bf16", "fp16") else None

    def blank(self) -> Convergence:
        """Return the record before anything is known: crashed until proven otherwise."""
        job = self.job
        return Convergence(
            environment=provenance.environment({}),
            name=job.spec.name,
            target=job.spec.target,
            backward=self.backward.target if self.backward else None,
            operator=job.operator,
            formula=job.formula,
            format=job.format,
            autocast=self.autocast,
            device=job.device,
            task=self.task,
            seeds=self.seeds,
            alpha=self.alpha,
            verdict=Verdict.CRASHED,
        )


class ConvergenceInterrupted(GeluVerifyError):
    """Stopped by the user; the message says how to go on."""

    exit_status = 130

    def __init__(self, done: int, total: int, ledger: Path) -> None:
        super().__init__(
            f"interrupted with {done} of {total} runs done, kept in {ledger}. "
            "Run the same command again to go on."
        )
