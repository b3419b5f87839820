"""Accuracy: the error of every element of the sweep, judged by the contract."""

from __future__ import annotations

import math

import torch

from gelu_verify.checks.case import Case, Outcome
from gelu_verify.contracts import BUILT_IN, Contract
from gelu_verify.errors import EmptySampleError
from gelu_verify.judge import Tally, cancellation_ratio, judge
from gelu_verify.measure import histogram
from gelu_verify.measure.error import Class
from gelu_verify.measure.regions import REGIONS
from gelu_verify.measure.summary import RegionSummary, Summary
from gelu_verify.records import (
    Accuracy,
    AllowanceUse,
    ClassCount,
    FindingStatus,
    RegionAccuracy,
    Tightest,
)
from gelu_verify.report.numbers import figure

#: Wider than any bound of the reference, in ULP.
_NEAR = 1e-3
_QUANTILES = (0.5, 0.9, 0.99, 0.999)


def run(case: Case) -> Outcome:
    """Measure the sweep, judge it, and say which stricter or looser promise would hold."""
    if case.job.replay and not torch.isfinite(case.elements.x).any():
        return Outcome()  # the special values check judges infinities and NaN
    summary = Summary()
    summary.add(case.batch)
    tally = tallied(case, case.contract)
    outcome = Outcome()
    if summary.total().count == 0 and tally.broken:
        # No figure without a number, but a verdict all the same.
        message = f"none of {summary.finite_inputs:,} finite inputs gives a finite result"
        finding = case.finding("accuracy", FindingStatus.FAILED, message, tally.first)
        outcome.findings.append(finding)
        return outcome
    outcome.fields["accuracy"] = as_record(case, summary, tally)
    outcome.fields["tightest"] = tightest(case)
    if tally.broken and tally.worst is not None:
        message = _failure_message(case, tally, outcome.fields["tightest"])
        outcome.findings.append(
            case.finding("accuracy", FindingStatus.FAILED, message, tally.worst)
        )
    else:
        message = f"{summary.inputs:,} inputs hold {case.contract.name}"
        outcome.findings.append(case.finding("accuracy", FindingStatus.PASSED, message))
    return outcome


def tallied(case: Case, contract: Contract) -> Tally:
    """Return the verdicts of a contract over the case's sweep."""
    tally = Tally(contract)
    errors = case.elements.errors
    # An ordinary element well within the limit holds; only the others are judged.
    near = ~(errors.ulp.abs() < contract.max_error_ulp - _NEAR) | ~errors.finite
    suspects = (near | (errors.classes != int(Class.NONE))).nonzero().flatten()
    if suspects.numel():
        tally.add(judge(contract, case.elements.select(suspects)), case.batch.select(suspects))
    return tally


def _failure_message(case: Case, tally: Tally, best: Tightest) -> str:
    assert tally.worst is not None
    point = case.point(tally.worst)
    would = best.contract or "no built-in contract"
    size = abs(tally.worst.error_ulp)
    worst = "worst" if math.isnan(size) else f"worst {figure(size)} ULP"
    kind = Class(int(case.elements.errors.classes[_index_of(case, tally)])).label
    suffix = "" if kind == "none" else f" ({kind})"
    return (
        f"{tally.broken:,} of {case.batch.regions.numel():,} inputs break {case.contract.name}; "
        f"{worst}{suffix}: "
        f"got {point.actual}, exact {point.exact}; {would} would pass"
    )


def _index_of(case: Case, tally: Tally) -> int:
    assert tally.worst is not None
    found = case.batch.regions == case.batch.regions
    for bits, pattern in zip(case.batch.inputs, tally.worst.inputs, strict=True):
        found = found & (bits == pattern)
    return int(found.nonzero()[0])


def tightest(case: Case) -> Tightest:
    """Return the strictest built-in contract that holds, and the limits that would."""
    holding = next((c.name for c in BUILT_IN if tallied(case, c).broken == 0), None)
    errors = case.elements.errors
    sizes = errors.ulp[errors.finite].abs()
    largest = float(sizes.max()) if sizes.numel() else float("nan")
    beyond = case.elements.select(errors.finite & (errors.ulp.abs() > 4.0))
    ratio = float(cancellation_ratio(beyond).max()) if len(beyond.errors) else None
    return Tightest(contract=holding, max_error_ulp=largest, cancellation=ratio)


def as_record(case: Case, summary: Summary, tally: Tally) -> Accuracy:
    """Return the saved form of a summary and of the allowances its contract used."""
    total = summary.total()
    if total.count == 0 or total.worst is None:
        raise EmptySampleError(
            "accuracy: got no finite result, expected at least one. Check what the kernel returns."
        )
    worst = case.point(total.worst)
    # The reference may be off by its bound, which at most 2^p ULP of the format scale.
    slack = case.elements.errors.bound * 2.0**case.subject.fmt.precision
    return Accuracy(
        sweep=case.sweep.name,
        exhaustive=case.sweep.exhaustive,
        seed=case.sweep.seed,
        inputs_digest=case.sweep.digest,
        inputs=summary.inputs,
        finite_inputs=summary.finite_inputs,
        count=total.count,
        max_error_ulp=total.max_error_ulp + slack,
        worst_input=", ".join(f"{worst.inputs[a]} ({worst.bits[a]})" for a in worst.inputs),
        worst=worst,
        mean_error_ulp=total.mean_error_ulp,
        rms_error_ulp=total.rms_error_ulp,
        quantiles={str(q): histogram.quantile(total.histogram, q) for q in _QUANTILES},
        histogram={i: int(n) for i, n in enumerate(total.histogram) if n},
        regions=tuple(_region(case, region.value, summary.regions[region]) for region in REGIONS),
        classes=tuple(
            ClassCount(
                name=cls.label,
                count=seen.count,
                first=case.point(seen.first),
                worst=case.point(seen.worst),
            )
            for cls, seen in sorted(summary.classes.items())
            if seen.first is not None and seen.worst is not None
        ),
        allowances=tuple(
            AllowanceUse(
                allowance=name, region=region.value, count=use.count, worst=case.point(use.worst)
            )
            for (name, region), use in tally.usage.items()
            if use.worst is not None
        ),
        reference=_reference(case),
    )


def _region(case: Case, name: str, part: RegionSummary) -> RegionAccuracy:
    return RegionAccuracy(
        region=name,
        count=part.count,
        max_error_ulp=part.max_error_ulp,
        mean_error_ulp=part.mean_error_ulp,
        rms_error_ulp=part.rms_error_ulp,
        clipped=part.clipped,
        worst=case.point(part.worst) if part.worst else None,
    )


def _reference(case: Case) -> str:
    bound = case.elements.errors.bound
    if bound == 0.0:
        return "mpmath, 200 bits"
    ulps = bound * 2.0**case.subject.fmt.precision
    return f"float64 reference, within {ulps:.1e} ULP of the exact value"
