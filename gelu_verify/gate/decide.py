"""The verdicts of baselines on results. What a contract says of them is decided elsewhere."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from gelu_verify.baseline import Baseline, Folder, Key, Measurement, device_class
from gelu_verify.baseline.record import LIBRARIES
from gelu_verify.gate import distributions, outputs, ratchet
from gelu_verify.gate.ratchet import Fact, Weight, same_inputs
from gelu_verify.gate.record import Against, Compared
from gelu_verify.job import Job
from gelu_verify.records import Environment, KernelResult, Status
from gelu_verify.statistics.sample import Sample

#: Returns the command that shows the verdict on a key again.
Again = Callable[[Key], str]
_ACCEPT = "gelu-verify baseline accept"


@dataclass(frozen=True)
class _Pair:
    """One result and its baseline, of which before is the measurement of its operator."""

    job: Job
    blank: Compared
    baseline: Baseline
    before: Measurement
    now: Measurement


def compare(
    jobs: list[Job],
    results: tuple[KernelResult, ...],
    environment: Environment,
    folder: Folder,
    configured: set[Key],
    again: Again,
) -> tuple[Compared, ...]:
    """Return the verdict on each result, then on baselines of what is no longer configured.

    All samples of the run are one family of tests. again: see :data:`Again`.
    """
    by_identity = {_identity(job): job for job in jobs if not job.replay}
    paired = [_paired(r, by_identity[_of_result(r)], environment, folder, again) for r in results]
    samples = {
        index: both
        for index, pair in enumerate(paired)
        if isinstance(pair, _Pair) and (both := _samples(pair)) is not None
    }
    of_samples = distributions.facts(samples)
    found = [
        _judged(pair, environment, folder, of_samples.get(index, []))
        if isinstance(pair, _Pair)
        else pair
        for index, pair in enumerate(paired)
    ]
    return (*found, *_disappeared(folder, configured))


def _identity(job: Job) -> tuple[object, ...]:
    return job.spec.name, job.operator, job.via, job.formula, job.format, job.device


def _of_result(result: KernelResult) -> tuple[object, ...]:
    r = result
    return r.name, r.operator, r.via, r.formula, r.format, r.device


def _paired(
    result: KernelResult, job: Job, environment: Environment, folder: Folder, again: Again
) -> _Pair | Compared:
    """Return a result with its baseline, or the verdict where there is nothing to compare."""
    key, own = Key.of_result(result), device_class(environment, result.device)
    blank = Compared(
        key=key,
        operator=result.operator,
        via=result.via,
        device=result.device,
        device_class=own,
        verdict=Against.NOT_COMPARED,
        message=f"{result.status.value.replace('_', ' ')}: nothing to compare",
        reproduce=again(key),
    )
    if result.status in (Status.UNAVAILABLE, Status.CRASHED, Status.TIMED_OUT):
        return blank
    baseline = folder.get(own, key)
    before = baseline.measurement(result.operator, result.via) if baseline else None
    if baseline is None or before is None:
        message = f"no baseline of {key}. Review the figures, then: {_ACCEPT}"
        return blank.model_copy(update={"verdict": Against.MISSING, "message": message})
    return _Pair(job, blank, baseline, before, Measurement.of(result))


def _samples(pair: _Pair) -> tuple[Sample, Sample] | None:
    """Return the samples before and now, where both have one."""
    before, now = pair.before.comparable, pair.now.comparable
    if before is None or now is None or before.sample is None or now.sample is None:
        return None
    return before.sample, now.sample


def _judged(
    pair: _Pair, environment: Environment, folder: Folder, of_sample: list[Fact]
) -> Compared:
    unlike = _unlike(pair.baseline, environment, pair.blank.device_class)
    warnings = list(unlike)
    if not same_inputs(pair.before, pair.now):
        warnings.append(
            "the sweep's inputs are not the baseline's: only contracts and samples are compared"
        )
    facts = outputs.facts(pair.before, pair.now, pair.job)
    facts += [*ratchet.facts(pair.before, pair.now), *of_sample]
    found = sorted(facts, key=lambda fact: -fact.weight)
    verdict, message = _verdict(found, bool(unlike))
    shown = next((fact.input for fact in found if fact.input), None)
    return pair.blank.model_copy(
        update={
            "verdict": verdict,
            "message": message,
            "facts": tuple(fact.text for fact in found),
            "worse": sum(fact.weight is Weight.WORSE for fact in found),
            "warnings": tuple(warnings),
            "input": shown,
            "baseline": str(folder.place(pair.baseline.device_class, pair.baseline.key)),
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


def _verdict(found: list[Fact], unlike: bool) -> tuple[Against, str]:
    """Return the verdict of facts, the gravest first, and the line that says it."""
    if not found:
        return Against.HELD, "as the baseline"
    more = f" (and {len(found) - 1} more)" if len(found) > 1 else ""
    told = found[0].text + more
    if found[0].weight is Weight.WORSE:
        if unlike:
            return Against.ELSEWHERE, f"worse than a baseline of something else: {told}"
        return Against.REGRESSED, told
    if found[0].weight is Weight.BETTER:
        return Against.IMPROVED, f"{told}. Tighten the baseline: {_ACCEPT}"
    return Against.CHANGED, told


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
