"""Cases that a fused kernel once failed, which every later check of the operator runs first.

They are kept in ``reports/fused_cases.jsonl``, looked for from the current folder, and written
only by ``gelu-verify check --save-cases``. The format they failed in does not matter: what is hard
in one is worth trying in the others.
"""

from __future__ import annotations

from pathlib import Path

from pydantic import Field

from gelu_verify.errors import unknown_name
from gelu_verify.inputs.problems.parsing import parse
from gelu_verify.inputs.problems.problem import Problem
from gelu_verify.operators import fused
from gelu_verify.operators.fused import FusedOperator
from gelu_verify.record_file import RecordFile
from gelu_verify.records import FindingStatus, Record, Results

#: Where it is looked for, from the current folder.
DEFAULT_PATH = Path("reports/fused_cases.jsonl")
_MARK = "case "


class StoredCase(Record):
    """One case, and the kernel that failed it."""

    operator: str
    formula: str
    format: str
    case: str = Field(description="dimensions, values, layouts and seed, as --case takes it")
    kernel: str
    device: str
    check: str
    message: str
    date: str = Field(description="UTC, ISO 8601")
    versions: dict[str, str]

    @property
    def problem(self) -> Problem:
        """The case itself."""
        return parse(self.case, fused.get(self.operator))

    @property
    def key(self) -> tuple[object, ...]:
        """What makes two cases the same: the later one is not written again."""
        return self.operator, self.formula, self.format, self.case, self.kernel, self.device

    def require_valid(self) -> None:
        """Raise a usage error for an operator or a case that is none."""
        if self.operator not in fused.NAMES:
            raise unknown_name("operator", self.operator, fused.NAMES)
        _ = self.problem


_FILE = RecordFile(StoredCase, "stored cases", "failed case")
read = _FILE.read
append = _FILE.append


def of(results: Results) -> list[StoredCase]:
    """Return the cases that fused kernels failed."""
    environment = results.environment
    return [
        StoredCase(
            operator=result.operator,
            formula=result.formula,
            format=result.format,
            case=finding.input.removeprefix(_MARK),
            kernel=result.name,
            device=environment.device or result.device,
            check=finding.check,
            message=finding.message,
            date=environment.date,
            versions=environment.versions,
        )
        for result in results.kernels
        for finding in result.findings
        if finding.status is FindingStatus.FAILED
        and finding.input is not None
        and finding.input.startswith(_MARK)
    ]


def problems(operator: FusedOperator) -> tuple[Problem, ...]:
    """Return the stored cases of an operator, without repeats, in the order of the file."""
    if not DEFAULT_PATH.is_file():
        return ()
    stored = read(DEFAULT_PATH)
    return tuple(dict.fromkeys(one.problem for one in stored if one.operator == operator.name))
