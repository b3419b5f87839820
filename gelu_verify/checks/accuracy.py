"""Accuracy: the error of every element measured, judged by the contract."""

from __future__ import annotations

import math

import torch

from gelu_verify import certification
from gelu_verify.checks.case import Case, Outcome
from gelu_verify.checks.evidence import Evidence, evidence
from gelu_verify.errors import EmptySampleError
from gelu_verify.measure import histogram
from gelu_verify.measure.regions import REGIONS
from gelu_verify.measure.summary import RegionSummary, Sample
from gelu_verify.records import (
    PAIRS,
    Accuracy,
    AllowanceUse,
    ClassCount,
    FindingStatus,
    ReferenceCertificate,
    RegionAccuracy,
)
from gelu_verify.report.numbers import figure

_QUANTILES = (0.5, 0.9, 0.99, 0.999)


def run(case: Case) -> Outcome:
    """Judge what was measured, and say which stricter or looser promise would hold."""
    if case.job.replay and not torch.isfinite(case.elements.x).any():
        return Outcome()  # the special values check judges infinities and NaN
    outcome = Outcome()
    for label, found in zip(("", "other dy: "), evidence(case), strict=False):
        summary, tally = found.summary, found.tally
        if summary.total().count == 0 and tally.broken:
            # No figure without a number, but a verdict all the same.
            count = f"{summary.finite_inputs:,}"
            message = f"{label}none of {count} finite inputs gives a finite result"
            finding = case.finding("accuracy", FindingStatus.FAILED, message, tally.first)
            outcome.findings.append(finding)
            return outcome
        if not outcome.fields:
            outcome.fields["accuracy"] = as_record(case, found)
            outcome.fields["tightest"] = found.tightest
        if tally.broken and tally.worst is not None:
            message = label + _failure_message(case, found, tally.worst)
            finding = case.finding("accuracy", FindingStatus.FAILED, message, tally.worst)
        else:
            message = f"{label}{_counted(found)} hold {case.contract.name}"
            finding = case.finding("accuracy", FindingStatus.PASSED, message)
        outcome.findings.append(finding)
    return outcome


def _counted(found: Evidence) -> str:
    unit = "pairs" if found.origin["sweep"] == PAIRS else "inputs"
    return f"{found.summary.inputs:,} {unit}"


def _failure_message(case: Case, found: Evidence, broken: Sample) -> str:
    point = case.point(broken)
    would = found.tightest.contract or "no built-in contract"
    size = abs(broken.error_ulp)
    worst = "worst" if math.isnan(size) else f"worst {figure(size)} ULP"
    kind = case.class_of(broken).label
    suffix = "" if kind == "none" else f" ({kind})"
    return (
        f"{found.tally.broken:,} of {_counted(found)} break {case.contract.name}; "
        f"{worst}{suffix}: "
        f"got {point.actual}, exact {point.exact}; {would} would pass"
    )


def as_record(case: Case, found: Evidence) -> Accuracy:
    """Return the saved form of figures and of the allowances that the contract used."""
    summary = found.summary
    total = summary.total()
    if total.count == 0 or total.worst is None:
        raise EmptySampleError(
            "accuracy: got no finite result, expected at least one. Check what the kernel returns."
        )
    worst = case.point(total.worst)
    return Accuracy(
        **found.origin,
        inputs=summary.inputs,
        finite_inputs=summary.finite_inputs,
        count=total.count,
        max_error_ulp=total.max_error_ulp + _bound_ulp(case),
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
            for (name, region), use in found.tally.usage.items()
            if use.worst is not None
        ),
        reference=_reference(case),
        certificate=_certificate(case),
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


def _bound_ulp(case: Case) -> float:
    """Return by how much the reference may be off: at most 2^p ULP of the format scale it."""
    return case.elements.errors.bound * 2.0**case.subject.fmt.precision


def _certificate(case: Case) -> ReferenceCertificate:
    subject = case.subject
    # The exact values of a sweep are evaluated on the CPU, those of a census beside the kernel.
    on_gpu = case.census is not None and subject.device.type == "cuda"
    derivative = subject.operator.derivative
    return certification.of(subject.formula, derivative, _bound_ulp(case), on_gpu)


def _reference(case: Case) -> str:
    ulps = _bound_ulp(case)
    if ulps == 0.0:
        return "mpmath, 200 bits"
    return f"float64 reference, within {ulps:.1e} ULP of the exact value"
