"""The verdicts of baselines on results. What a contract says of them is decided elsewhere."""

from __future__ import annotations

from gelu_verify.baseline import Baseline, Folder, Key, Measurement, device_class
from gelu_verify.baseline.record import LIBRARIES
from gelu_verify.gate.ratchet import Fact, Weight, facts, same_inputs
from gelu_verify.gate.record import Against, Compared
from gelu_verify.job import Job, reproduce
from gelu_verify.records import Environment, KernelResult, Status

_ACCEPT = "gelu-verify baseline accept"


def compare(
    jobs: list[Job],
    results: tuple[KernelResult, ...],
    environment: Environment,
    folder: Folder,
    configured: set[Key],
) -> tuple[Compared, ...]:
    """Return the verdict on each result, then on baselines of what is no longer configured."""
    by_identity = {_identity(job): job for job in jobs if not job.replay}
    found = [
        _of(result, by_identity[_of_result(result)], environment, folder) for result in results
    ]
    return (*found, *_disappeared(folder, configured))


def _identity(job: Job) -> tuple[object, ...]:
    return job.spec.name, job.operator, job.via, job.formula, job.format, job.device


def _of_result(result: KernelResult) -> tuple[object, ...]:
    r = result
    return r.name, r.operator, r.via, r.formula, r.format, r.device


def _of(result: KernelResult, job: Job, environment: Environment, folder: Folder) -> Compared:
    key, own = Key.of_result(result), device_class(environment, result.device)
    blank = Compared(
        key=key,
        operator=result.operator,
        via=result.via,
        device=result.device,
        device_class=own,
        verdict=Against.NOT_COMPARED,
        message=f"{result.status.value.replace('_', ' ')}: nothing to compare",
        reproduce=reproduce(job),
    )
    if result.status in (Status.UNAVAILABLE, Status.CRASHED, Status.TIMED_OUT):
        return blank
    baseline = folder.get(own, key)
    before = baseline.measurement(result.operator, result.via) if baseline else None
    if baseline is None or before is None:
        message = f"no baseline of {key}. Review the figures, then: {_ACCEPT}"
        return blank.model_copy(update={"verdict": Against.MISSING, "message": message})
    now = Measurement.of(result)
    unlike = _unlike(baseline, environment, own)
    warnings = list(unlike)
    if not same_inputs(before, now):
        warnings.append("the inputs are not those of the baseline: only contracts are compared")
    verdict, message, found = _verdict(facts(before, now), bool(unlike))
    return blank.model_copy(
        update={
            "verdict": verdict,
            "message": message,
            "facts": tuple(fact.text for fact in found),
            "warnings": tuple(warnings),
            "input": found[0].input if found else None,
            "baseline": str(folder.place(baseline.device_class, key)),
        }
    )


def _unlike(baseline: Baseline, environment: Environment, own: str) -> list[str]:
    """Return why a baseline was not measured on what the results were."""
    found = []
    if baseline.device_class != own:
        found.append(f"the baseline is of {baseline.device_class}, this is {own}")
    for name in LIBRARIES:
        was, now = baseline.provenance.libraries.get(name), environment.libraries.get(name)
        if was != now:
            found.append(f"the baseline is of {name} {was or 'none'}, this is {now or 'none'}")
    return found


def _verdict(found: list[Fact], unlike: bool) -> tuple[Against, str, list[Fact]]:
    if not found:
        return Against.HELD, "as the baseline", found
    worst = max(fact.weight for fact in found)
    more = f" (and {len(found) - 1} more)" if len(found) > 1 else ""
    told = found[0].text + more
    if worst is Weight.WORSE:
        if unlike:
            return Against.ELSEWHERE, f"worse than a baseline of something else: {told}", found
        return Against.REGRESSED, told, found
    if worst is Weight.BETTER:
        return Against.IMPROVED, f"{told}. Tighten the baseline: {_ACCEPT}", found
    return Against.CHANGED, told, found


def _disappeared(folder: Folder, configured: set[Key]) -> list[Compared]:
    return [
        Compared(
            key=key,
            operator=key.operator,
            device="-",
            device_class=name,
            verdict=Against.DISAPPEARED,
            message=f"{key} has a baseline and is no longer configured. "
            f"Configure it again, or delete the baseline: {_ACCEPT} --prune",
            baseline=str(folder.place(name, key)),
        )
        for name, key in folder.found
        if key not in configured
    ]
