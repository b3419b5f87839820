"""How a defect and a sound kernel are declared: a decorator that leaves a record on the function.

:mod:`reference_kernels.defects` says what is stated, and has examples.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from enum import StrEnum
from typing import Any, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field

from gelu_verify import contracts
from gelu_verify.contracts import Contract
from gelu_verify.job import Job, plan
from gelu_verify.kernels.spec import Declared, KernelSpec

Kernel = TypeVar("Kernel", bound=Callable[..., Any])


class Kind(StrEnum):
    """What sort of fault; the order is that of reports."""

    SPECIAL_VALUES = "special values"
    TAIL = "left tail"
    OVERFLOW = "overflow on the way"
    FORMULA = "wrong formula"
    PRECISION = "precision"
    ACCUMULATION = "accumulation"
    LAYOUT = "layout"
    SHAPE = "tails and shapes"
    INDEX = "index overflow"
    BACKWARD = "backward"
    ALIASING = "aliasing"
    DTYPE = "dtype"
    DETERMINISM = "determinism and batch"
    HARM = "crash, hang, memory"


class Entry(BaseModel):
    """A kernel of the catalogue, with all that it claims."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str = Field(description="the function's name with hyphens: unique in the catalogue")
    target: str
    summary: str = Field(description="what the function does, its docstring in one line")
    operator: str = "gelu"
    formula: str = "erf"
    formats: tuple[str, ...] = ("fp32", "bf16")
    contract: str | Contract = Field(
        contracts.DEFAULT, description="built-in name, or one of its own"
    )
    devices: tuple[str, ...] = ("cpu", "cuda")
    arithmetic: Declared = Declared()
    nondeterministic: str = ""
    gradient: Literal["", "too", "only"] = Field(
        "", description="whether what autograd makes of a gelu is checked, too or alone"
    )
    harmful: bool = Field(
        False, description="it may end, hang or fill its process: it runs in one of its own"
    )

    @property
    def spec(self) -> KernelSpec:
        """The kernel as any other is declared."""
        return KernelSpec(
            name=self.name,
            target=self.target,
            operator=self.operator,
            formula=self.formula,
            formats=self.formats,
            devices=self.devices,
            arithmetic=self.arithmetic,
            nondeterministic=self.nondeterministic,
            summary=self.summary,
        )

    def jobs(self, device: str, seed: int = 0, formats: int | None = None) -> Iterator[Job]:
        """Yield the jobs of the first formats (all for None) at the depth quick.

        The gradient's job is among them where it is asked for.
        """
        promise = self.contract
        if isinstance(promise, str):
            promise = contracts.get(promise)
        names = self.formats[:formats]
        for job in plan(self.spec, device=device, depth="quick", seed=seed, format_names=names):
            if self.gradient != ("only" if job.via is None else ""):
                yield job.model_copy(update={"contract": promise})


class Defect(Entry):
    """A kernel with one known fault that the harness must reject."""

    kind: Kind
    report: str = Field(
        "",
        description="owner/repository#number of the public report it is modelled on; empty if none",
    )
    rejected_by: dict[str, str] = Field(
        min_length=1,
        description="check that must reject it to words that its finding must contain",
    )
    unseen_because: str = Field(
        "",
        description="why unit normals with atol = rtol = 1e-3 let it pass; empty: they do not",
    )


class Sound(Entry):
    """A kernel that differs in a legal way and that no check may flag."""


def defect(
    kind: Kind,
    *,
    report: str = "",
    rejected_by: dict[str, str],
    unseen_because: str = "",
    **claims: Any,
) -> Callable[[Kernel], Kernel]:
    """Declare a kernel as a defect; its docstring says what is wrong. claims: as in ``Entry``."""
    stated = {
        "kind": kind,
        "report": report,
        "rejected_by": rejected_by,
        "unseen_because": unseen_because,
    }

    def declare(kernel: Kernel) -> Kernel:
        kernel.__dict__["entry"] = Defect(**_named(kernel), **stated, **claims)
        return kernel

    return declare


def sound(**claims: Any) -> Callable[[Kernel], Kernel]:
    """Declare a kernel as sound; its docstring says in what it differs from the others."""

    def declare(kernel: Kernel) -> Kernel:
        kernel.__dict__["entry"] = Sound(**_named(kernel), **claims)
        return kernel

    return declare


def _named(kernel: Callable[..., Any]) -> dict[str, str]:
    name = str(kernel.__qualname__)
    return {
        "name": name.replace("_", "-"),
        "target": f"{kernel.__module__}:{name}",
        "summary": " ".join((inspect.getdoc(kernel) or "").split()),
    }
