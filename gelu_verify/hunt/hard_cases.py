"""The file of hard cases: JSON lines, one input each that a hunt found and later checks replay."""

from __future__ import annotations

from pathlib import Path

from pydantic import Field, field_validator

from gelu_verify import formats
from gelu_verify.errors import UsageError
from gelu_verify.hunt.records import HuntReport
from gelu_verify.operators import get as get_operator
from gelu_verify.record_file import RecordFile
from gelu_verify.records import Record, Results

#: Where it is looked for, from the current folder.
DEFAULT_PATH = Path("reports/hard_cases.jsonl")
#: A correctly rounded result is no hard case.
_WORTH_KEEPING_ULP = 0.5


class HardCase(Record):
    """One input, what is right, and what a kernel gave."""

    operator: str
    formula: str
    format: str
    bits: tuple[str, ...] = Field(description="pattern of each argument, hexadecimal")
    inputs: tuple[str, ...] = Field(description="the same, shortest decimals")
    exact: str = Field(description="exact value, 17 significant digits")
    kernel: str
    device: str
    got: str
    error_ulp: float
    date: str = Field(description="UTC, ISO 8601")
    versions: dict[str, str]

    @field_validator("operator")
    @classmethod
    def _is_an_operator(cls, name: str) -> str:
        return _valid(get_operator, name)

    @field_validator("format")
    @classmethod
    def _is_a_format(cls, name: str) -> str:
        return _valid(formats.get, name)

    @property
    def patterns(self) -> tuple[int, ...]:
        """The input patterns, one for each argument; a usage error if they do not fit."""
        fmt = formats.get(self.format)
        arguments = get_operator(self.operator).arguments
        if len(self.bits) != len(arguments):
            raise UsageError(f"bits: got {len(self.bits)}, expected {len(arguments)}")
        if not all(text.lower().startswith("0x") for text in self.bits):
            raise UsageError(f"bits: got {', '.join(self.bits)}, expected hexadecimal patterns")
        return tuple(formats.parse(text, fmt) for text in self.bits)

    @property
    def key(self) -> tuple[object, ...]:
        """What makes two cases the same: the later one is not written again."""
        return self.operator, self.formula, self.format, self.bits, self.kernel, self.device

    def require_valid(self) -> None:
        """Raise a usage error unless the patterns fit the operator and the format."""
        _ = self.patterns


def _valid(get: object, name: str) -> str:
    try:
        get(name)  # type: ignore[operator]
    except UsageError as error:
        raise ValueError(str(error)) from None
    return name


def of(report: HuntReport) -> list[HardCase]:
    """Return what a hunt found as hard cases: all that is not correctly rounded."""
    hunt, environment = report.hunt, report.environment
    return [
        HardCase(
            operator=hunt.operator,
            formula=hunt.formula,
            format=hunt.format,
            bits=tuple(found.point.bits.values()),
            inputs=tuple(found.point.inputs.values()),
            exact=found.point.exact,
            kernel=hunt.name if not hunt.via else f"{hunt.name} ({hunt.via})",
            device=environment.device or hunt.device,
            got=found.point.actual,
            error_ulp=found.point.error_ulp,
            date=environment.date,
            versions=environment.versions,
        )
        for found in hunt.found
        if not abs(found.point.error_ulp) <= _WORTH_KEEPING_ULP
    ]


def of_examples(results: Results) -> list[HardCase]:
    """Return the examples of Hypothesis that failed, so that later checks run them first."""
    environment = results.environment
    return [
        HardCase(
            operator=result.operator,
            formula=result.formula,
            format=result.format,
            bits=tuple(point.bits.values()),
            inputs=tuple(point.inputs.values()),
            exact=point.exact,
            kernel=result.label,
            device=environment.device or result.device,
            got=point.actual,
            error_ulp=point.error_ulp,
            date=environment.date,
            versions=environment.versions,
        )
        for result in results.kernels
        if result.examples
        for point in result.examples.failed
    ]


_FILE = RecordFile(HardCase, "hard cases", "hard case")
read = _FILE.read
append = _FILE.append
