"""The options of a gate as a record. Importing this loads no framework."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from gelu_verify import contracts, formats, job, operators
from gelu_verify.config.options import LISTS, OPTIONS
from gelu_verify.config.reading import parsed
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
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, validate_default=True)


def _option(name: str) -> Any:
    """Return the field of an option."""
    option = OPTIONS[name]
    return Field(option.default, description=option.help)


class _Claims(_Options):
    """What may be said of one kernel, and of all that do not say it themselves."""

    operator: _Operator | None = _option("operator")
    formula: _Formula | None = _option("formula")
    formats: _Formats | None = _option("formats")
    contract: _Contract | None = _option("contract")


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

    devices: _Devices = _option("devices")
    sweep: Literal["quick", "standard", "exhaustive"] = _option("sweep")
    seed: Annotated[int, Field(ge=0, le=job.LARGEST_SEED)] = _option("seed")
    profile: Annotated[Profile, Field(strict=False)] = _option("profile")
    examples: Annotated[int, Field(ge=0, le=1_000_000)] | None = _option("examples")
    timeout: Annotated[float, Field(ge=0.1, allow_inf_nan=False)] = _option("timeout")
    workers: Annotated[int, Field(ge=1, le=1024)] | None = _option("workers")
    baselines: Annotated[str, Field(min_length=1)] = _option("baselines")
    kernels: Annotated[tuple[KernelEntry, ...], Field(strict=False)] = ()

    def over(self, given: dict[str, str | None]) -> Settings:
        """Return settings with options given as text over these, over every kernel's own too.

        Raises :class:`UsageError` for a value that is none.
        """
        values = {name: text.split(",") if name in LISTS else text
                  for name, text in given.items() if text is not None}  # fmt: skip
        changed = parsed(Settings, values, "option", strict=False)
        update = {name: getattr(changed, name) for name in values}
        claims = {name: value for name, value in update.items() if name in KernelEntry.model_fields}
        entries = tuple(entry.model_copy(update=claims) for entry in self.kernels)
        return self.model_copy(update={**update, "kernels": entries})

    def spec(self, entry: KernelEntry, declared: KernelSpec | None = None) -> KernelSpec:
        """Return what an entry claims of its kernel, over what the kernel declares itself.

        A registered kernel's known issues are of its own contract and formula.
        declared: of a function at hand; None to find the kernel by its name.
        """
        from gelu_verify.kernels import registry

        declared = declared or registry.find(entry.kernel)
        claims = {
            name: getattr(entry, name) or getattr(self, name) for name in _Claims.model_fields
        }
        spec = declared.model_copy(update={k: v for k, v in claims.items() if v is not None})
        same = (spec.contract, spec.formula) == (declared.contract, declared.formula)
        issues = (*(declared.known_issues if same else ()), *entry.known_issues)
        return spec.model_copy(update={"known_issues": issues})
