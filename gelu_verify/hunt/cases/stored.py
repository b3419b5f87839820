"""What a hunt over cases found, as the cases that later checks run first."""

from __future__ import annotations

from gelu_verify.hunt.records import HuntReport
from gelu_verify.inputs.problems.stored import StoredCase


def of(report: HuntReport) -> list[StoredCase]:
    """Return the cases that break a bound; a sound kernel has none."""
    hunt, environment = report.hunt, report.environment
    return [
        StoredCase(
            operator=hunt.operator,
            formula=hunt.formula,
            format=hunt.format,
            case=found.case,
            kernel=hunt.name,
            device=environment.device or hunt.device,
            check=found.check,
            message=found.message,
            date=environment.date,
            versions=environment.versions,
        )
        for found in hunt.cases
        if found.message is not None
    ]
