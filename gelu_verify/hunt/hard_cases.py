"""The file of hard cases: JSON lines, one input each that a hunt found and later checks replay."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from pydantic import Field, ValidationError, field_validator

from gelu_verify import formats
from gelu_verify.errors import GeluVerifyError, UsageError
from gelu_verify.hunt.records import HuntReport
from gelu_verify.operators import get as get_operator
from gelu_verify.records import Record

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
            versions={"gelu_verify": environment.gelu_verify, **environment.libraries},
        )
        for found in hunt.found
        if not abs(found.point.error_ulp) <= _WORTH_KEEPING_ULP
    ]


def read(path: Path) -> list[HardCase]:
    """Return the cases of a file; a usage error names the first line that cannot be read."""
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise UsageError(f"hard cases: got {path}, {error.strerror}. Check the path.") from None
    except UnicodeDecodeError:
        raise UsageError(f"hard cases: got {path}, expected text in UTF-8.") from None
    return _parse(text, path)


def _parse(text: str, path: Path) -> list[HardCase]:
    cases = []
    for number, line in enumerate(text.splitlines(), start=1):
        if not line.strip():
            continue
        try:
            case = HardCase.model_validate_json(line)
            _ = case.patterns
        except (ValidationError, GeluVerifyError) as error:
            detail = " ".join(str(error).split())[:200]
            raise UsageError(
                f"hard cases: got {path} line {number} ({detail}), "
                "expected one JSON object of a hard case. Repair or delete the line."
            ) from None
        cases.append(case)
    return cases


def append(path: Path, cases: Iterable[HardCase]) -> int:
    """Add cases that a file does not hold yet and return how many; all of them in one write.

    Two processes may append at once: each holds the file's lock from reading to writing.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("a+b") as file, _locked(file):
            file.seek(0)
            text = file.read().decode("utf-8", errors="replace")
            known = {case.key for case in _parse(text, path)}
            new = {case.key: case for case in cases if case.key not in known}
            lines = "".join(case.model_dump_json() + "\n" for case in new.values())
            start = "\n" if lines and text and not text.endswith("\n") else ""
            # One write to a file opened for appending: a reader sees all of it or nothing.
            os.write(file.fileno(), (start + lines).encode())
            return len(new)
    except OSError as error:
        raise UsageError(
            f"hard cases: got {path}, {error.strerror}. Choose another place."
        ) from None


@contextmanager
def _locked(file: IO[bytes]) -> Iterator[None]:
    """Hold the file alone, where the system can."""
    with contextlib.suppress(ImportError):
        import fcntl

        fcntl.flock(file, fcntl.LOCK_EX)  # released when the file is closed
    yield
