"""What a kernel declares about itself. Importing this loads no framework."""

from __future__ import annotations

from importlib import metadata

from packaging.specifiers import SpecifierSet
from packaging.version import Version
from pydantic import BaseModel, ConfigDict, Field


class KnownIssue(BaseModel):
    """A declared fault: its failure does not fail a run, and its absence does.

    It holds for one check, for the formats and devices named, under the library versions and on
    the instruction sets named.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    check: str = Field(description="name of the check that fails")
    operator: str = Field("gelu", description="operator that shows it")
    formats: tuple[str, ...]
    devices: tuple[str, ...] = ("cpu",)
    link: str = Field(description="public report")
    summary: str
    package: str = "torch"
    versions: str = Field("", description="PEP 440 range of the package that has the fault")
    instruction_sets: tuple[str, ...] = Field(
        (), description="torch's CPU capabilities that show it (AVX2, AVX512, ...); () for all"
    )

    def applies(self, operator: str, fmt: str, device: str) -> bool:
        """Tell whether the issue is declared for this operator, format, device and library."""
        installed = Version(metadata.version(self.package).split("+")[0])
        if device == "cpu" and self.instruction_sets:
            import torch

            if torch.backends.cpu.get_cpu_capability() not in self.instruction_sets:
                return False
        return (
            operator == self.operator
            and fmt in self.formats
            and device in self.devices
            and installed in SpecifierSet(self.versions, prereleases=True)
        )


class KernelSpec(BaseModel):
    """A kernel: how to reach it, what it claims to compute, what it promises.

    target: ``module:function``, ``path/to/file.py:function`` or ``torch.ops.namespace.name``.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str
    target: str
    operator: str = "gelu"
    formula: str = "erf"
    formats: tuple[str, ...] = ("fp32", "bf16", "fp16")
    contract: str = "cancelling"
    devices: tuple[str, ...] = ("cpu", "cuda")
    known_issues: tuple[KnownIssue, ...] = ()
    summary: str = ""
    registered: bool = False
