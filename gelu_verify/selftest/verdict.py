"""What became of each entry: what was found against what the catalogue states."""

from __future__ import annotations

from itertools import groupby

from gelu_verify import contracts
from gelu_verify.contracts import Contract
from gelu_verify.records import (
    Caught,
    DefectResult,
    Fate,
    Finding,
    KernelResult,
    SoundResult,
    Status,
    UsualVerdict,
)
from gelu_verify.selftest.entry import Defect, Entry, Sound


def of_defect(entry: Defect, result: KernelResult, usual: tuple[UsualVerdict, ...]) -> DefectResult:
    """Return a row of the kill matrix: killed only where every stated check gave its reason."""
    caught = _caught(entry, result)
    missing = tuple(
        f"{check}: {words}" if words else check
        for check, words in entry.rejected_by.items()
        if not any(part.check == check and part.stated for part in caught)
    )
    return DefectResult(
        **_identity(entry, result),
        kind=entry.kind,
        report=entry.report,
        unseen_because=entry.unseen_because,
        fate=_fate(result, missing),
        status=result.status,
        caught_by=caught,
        missing=missing,
        usual=usual,
        seconds=result.seconds,
    )


def _fate(result: KernelResult, missing: tuple[str, ...]) -> Fate:
    if result.status is Status.UNAVAILABLE:
        return Fate.NOT_RUN
    if result.status.holds:
        return Fate.SURVIVED
    return Fate.OTHER_REASON if missing else Fate.KILLED


def _caught(entry: Defect, result: KernelResult) -> tuple[Caught, ...]:
    """Return one row for each check that failed: the stated finding, or its first."""
    rows = []
    ordered = sorted(result.failures, key=lambda f: f.check)
    for check, group in groupby(ordered, key=lambda f: f.check):
        found = list(group)
        stated = [f for f in found if _is_stated(entry, f)]
        shown = (stated or found)[0]
        sizes = [f.strength for f in found if f.strength is not None]
        rows.append(
            Caught(
                check=check,
                stated=bool(stated),
                message=shown.message,
                input=shown.input,
                strength=max(sizes, default=None),
            )
        )
    return tuple(sorted(rows, key=lambda row: not row.stated))


def _is_stated(entry: Defect, finding: Finding) -> bool:
    words = entry.rejected_by.get(finding.check)
    return words is not None and words in f"{finding.message} at {finding.input}"


def of_sound(
    entry: Sound, results: list[KernelResult], usual: tuple[UsualVerdict, ...]
) -> SoundResult:
    """Return what all seeds of a sound kernel in one format gave; any failure is an alarm."""
    run = [r for r in results if r.status is not Status.UNAVAILABLE]
    alarms = tuple(f for r in run if not r.status.holds for f in r.failures or r.findings)
    fate = Fate.FLAGGED if alarms else Fate.ACCEPTED
    promise = entry.contract
    if isinstance(promise, str):
        promise = contracts.get(promise)
    ratios = [ratio for r in run if (ratio := _ratio(r, promise)) is not None]
    return SoundResult(
        **_identity(entry, results[0]),
        contract=promise.name,
        fate=fate if run else Fate.NOT_RUN,
        seeds=len(run),
        alarms=alarms,
        largest_ratio=max(ratios, default=None),
        usual=usual,
        seconds=sum(r.seconds for r in results),
    )


def _ratio(result: KernelResult, promise: Contract) -> float | None:
    """Return the largest error of one run over the ULP limit, or over the bound."""
    found = [result.bound.max_ratio] if result.bound else []
    if result.accuracy:
        found.append(result.accuracy.max_error_ulp / promise.max_error_ulp)
    return max(found, default=None)


def _identity(entry: Entry, result: KernelResult) -> dict[str, str | None]:
    return {
        "name": entry.name,
        "target": entry.target,
        "operator": result.operator,
        "via": result.via,
        "formula": result.formula,
        "format": result.format,
        "summary": entry.summary,
    }
