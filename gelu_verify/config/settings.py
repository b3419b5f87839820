"""The options of a gate as a record. Importing this loads no framework."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from gelu_verify import contracts, formats, job, operators
from gelu_verify.errors import UsageError
from gelu_verify.kernels.spec import KernelSpec, KnownIssue


class Profile(StrEnum):
    """How inputs are explored: the same every time, or others every time."""

    CI = "ci"
    NIGHTLY = "nightly"


def _named(find: Any) -> Any:
    """Return a validator that lets a name pass which ``find`` knows."""

    def check(name: str) -> str:
        try:
            find(name)
        except UsageError as error:
            raise ValueError(str(error)) from None
        return name

    return AfterValidator(check)


_Operator = Annotated[str, _named(operators.require)]
_Formula = Annotated[str, _named(operators.require_formula)]
_Contract = Annotated[str, _named(contracts.get)]
#: Lists of a file; the rest of a record is read strictly, these as tuples.
_Formats = Annotated[
    tuple[Annotated[str, _named(formats.get)], ...], Field(strict=False, min_length=1)
]
_Devices = Annotated[
    tuple[Annotated[str, _named(job.require_device)], ...], Field(strict=False, min_length=1)
]


class _Options(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


class _Claims(_Options):
    """What may be said of one kernel, and of all that do not say it themselves."""

    operator: _Operator | None = Field(
        None, description=f"What it computes: {', '.join(operators.names())}."
    )
    formula: _Formula | None = Field(
        None, description="Which GELU it claims: erf, tanh or sigmoid. [default: erf]"
    )
    formats: _Formats | None = Field(
        None,
        description="Comma-separated: fp64, fp32, bf16, fp16, fp8_e4m3fn, fp8_e5m2. "
        "[default: what it declares, else fp32,bf16,fp16]",
    )
    contract: _Contract | None = Field(
        None,
        description="What it promises, strictest first: correctly_rounded, faithful, "
        "tail_accurate, saturating, cancelling, approximation. "
        "[default: what it declares, else cancelling]",
    )


class KernelEntry(_Claims):
    """One of ``[[tool.gelu_verify.kernels]]``."""

    kernel: Annotated[str, Field(min_length=1)] = Field(description="name, as check takes it")
    devices: _Devices | None = Field(None, description="devices it is run on, of those set above")
    known_issues: Annotated[tuple[KnownIssue, ...], Field(strict=False)] = Field(
        (), description="declared faults, beside those of a registered kernel"
    )


class Settings(_Claims):
    """Every option of a gate; the names are those of the file and of the command line.

    A claim set here holds for every kernel that has none of its own.
    """

    devices: _Devices = Field(
        ("cpu",), description="Comma-separated: cpu, cuda or cuda:N; what is absent is reported."
    )
    sweep: Literal["quick", "standard", "exhaustive"] = Field(
        "standard",
        description="quick, standard or exhaustive (fp32: all 2^32 inputs; two arguments of 16 "
        "bits, also a backward: all 2^32 pairs); of one argument 8 and 16 bits are always "
        "exhaustive.",
    )
    seed: Annotated[int, Field(ge=0, le=job.LARGEST_SEED)] = Field(
        0, description="Seed of the sampled inputs; nightly draws one where it is 0."
    )
    profile: Annotated[Profile, Field(strict=False)] = Field(
        Profile.CI,
        description="ci: the same inputs in every run; nightly: a fresh seed, which is printed, "
        "and more examples.",
    )
    examples: Annotated[int, Field(ge=0, le=1_000_000)] | None = Field(
        None,
        description="Property-based examples a kernel and format. [default: 20, nightly 500]",
    )
    timeout: Annotated[float, Field(ge=0.1, allow_inf_nan=False)] = Field(
        60.0, description="Seconds the kernel may take in a single check before it is ended."
    )
    workers: Annotated[int, Field(ge=1, le=1024)] | None = Field(
        None, description="Kernels checked at a time. [default: one a core]"
    )
    baselines: Annotated[str, Field(min_length=1)] = Field(
        "reports/baselines", description="Folder of the baselines."
    )
    kernels: Annotated[tuple[KernelEntry, ...], Field(strict=False)] = ()

    def over(self, given: dict[str, str | None]) -> Settings:
        """Return settings with options given as text over these, over every kernel's own too.

        Raises :class:`UsageError` for a value that is none.
        """
        from gelu_verify.config.reading import parsed

        values = {name: text.split(",") if name in LISTS else text
                  for name, text in given.items() if text is not None}  # fmt: skip
        changed = parsed(Settings, values, "option", strict=False)
        update = {name: getattr(changed, name) for name in values}
        claims = {name: value for name, value in update.items() if name in KernelEntry.model_fields}
        entries = tuple(entry.model_copy(update=claims) for entry in self.kernels)
        return self.model_copy(update={**update, "kernels": entries})

    def spec(self, entry: KernelEntry) -> KernelSpec:
        """Return what an entry claims of its kernel, over what the kernel declares itself.

        A registered kernel's known issues are of its own contract and formula.
        """
        from gelu_verify.kernels import registry

        declared = registry.find(entry.kernel)
        claims = {name: getattr(entry, name) or getattr(self, name) for name in _Claims.model_fields}
        spec = declared.model_copy(update={k: v for k, v in claims.items() if v is not None})
        same = (spec.contract, spec.formula) == (declared.contract, declared.formula)
        issues = (*(declared.known_issues if same else ()), *entry.known_issues)
        return spec.model_copy(update={"known_issues": issues})


#: Options that are lists: text with commas on a command line.
LISTS = ("formats", "devices")
