"""What a kernel declares about itself. Importing this loads no framework."""

from __future__ import annotations

from importlib import metadata
from typing import Literal

from packaging.specifiers import SpecifierSet
from packaging.version import Version
from pydantic import BaseModel, ConfigDict, Field, field_validator


class KnownIssue(BaseModel):
    """A declared fault: its failure does not fail a run, and its absence does.

    It holds for one check, for the formats, devices, sweeps and inputs named, under the library
    versions and on the instruction sets named.
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
    sweeps: tuple[Literal["quick", "standard", "exhaustive"], ...] = Field(
        (), description="sweeps that show it, others neither excuse it nor miss it; () for all"
    )
    inputs: tuple[str, ...] = Field(
        (), description="inputs that show it, as findings write them (inf, -0.0); () for any"
    )

    @field_validator("versions")
    @classmethod
    def _is_a_range(cls, text: str) -> str:
        SpecifierSet(text)  # raises InvalidSpecifier, a ValueError
        return text

    def applies(self, operator: str, fmt: str, device: str, sweep: str) -> bool:
        """Tell whether the issue is declared for this operator, format, device, sweep, library."""
        if operator != self.operator or fmt not in self.formats or device not in self.devices:
            return False
        if self.sweeps and sweep not in self.sweeps:
            return False
        try:
            installed = Version(metadata.version(self.package).split("+")[0])
        except metadata.PackageNotFoundError:
            return False
        if device == "cpu" and self.instruction_sets:
            import torch

            if torch.backends.cpu.get_cpu_capability() not in self.instruction_sets:
                return False
        return installed in SpecifierSet(self.versions, prereleases=True)

    def covers(self, shown: str | None) -> bool:
        """Tell whether a finding's input (``x = inf (0x7F80)``) is one that the issue names."""
        return not self.inputs or any(f"x = {x} (" in (shown or "") for x in self.inputs)


class Declared(BaseModel):
    """What a fused kernel declares about its arithmetic; nothing declared is the strict default.

    The default computes in fp32 (fp64 for fp64) and, in a 16-bit format, may round each named
    intermediate result to the format once, as eager mode does.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    products: Literal["", "fp64", "fp32", "tf32", "fp16", "bf16"] = Field(
        "", description="format that the inputs of products are rounded to; empty for their own"
    )
    accumulate: Literal["", "fp64", "fp32", "fp16", "bf16"] = Field(
        "", description="format of sums; empty for fp32, and fp64 for fp64"
    )
    casts: tuple[str, ...] | None = Field(
        None,
        description="intermediate results that may be rounded to the format; None for the "
        "operator's own list in a 16-bit format, and none in others",
    )


class KernelSpec(BaseModel):
    """A kernel: how to reach it, what it claims to compute, what it promises.

    target: ``module:function``, ``path/to/file.py:function``, ``path/to/lib.so:symbol`` or
    ``torch.ops.namespace.name``.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str
    target: str
    imports: str = Field("", description="module that registers a torch operator, imported first")
    operator: str = "gelu"
    formula: str = "erf"
    formats: tuple[str, ...] = ("fp32", "bf16", "fp16")
    contract: str = "cancelling"
    devices: tuple[str, ...] = ("cpu", "cuda")
    arithmetic: Declared = Field(
        Declared(), description="what a fused kernel computes in, where it is not the default"
    )
    nondeterministic: str = Field(
        "", description="why the same call may give other bits, where it may; empty: it repeats"
    )
    known_issues: tuple[KnownIssue, ...] = ()
    summary: str = ""
    registered: bool = False
