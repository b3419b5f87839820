"""The summary table's rows, shared by the terminal and the Markdown rendering."""

from __future__ import annotations

from gelu_verify.records import (
    Certification,
    FindingStatus,
    KernelResult,
    ReferenceCertificate,
    Results,
    Speed,
    Status,
)
from gelu_verify.report.numbers import figure

HEADER = (
    "kernel",
    "operator",
    "format",
    "formula",
    "deep tail",
    "tail",
    "shoulder",
    "centre",
    "positive",
    "saturated",
    "error/bound",
    "special values",
    "contract",
    "verdict",
)
REGION_KEYS = ("deep_tail", "tail", "shoulder", "centre", "positive", "saturated")

REGION_NAMES = tuple(name.replace("_", " ") for name in REGION_KEYS)

LABELS = {
    Status.PASSED: "passed",
    Status.FAILED: "FAILED",
    Status.KNOWN_ISSUE: "known issue",
    Status.CRASHED: "CRASHED",
    Status.TIMED_OUT: "TIMED OUT",
    Status.UNAVAILABLE: "unavailable",
}

CERTIFICATION = {
    Certification.CERTIFIED: "certified",
    Certification.PARTLY: "partly certified",
    Certification.ANALYSIS: "analysis only",
    Certification.UNCERTIFIED: "UNCERTIFIED",
    Certification.ORACLE: "oracle",
}


def certificate(found: ReferenceCertificate) -> str:
    """Return the level of a certificate and why it has it."""
    reason = found.reason.removeprefix("uncertified: ").removeprefix("certified ")
    return f"{CERTIFICATION[found.level]}: {reason}"


def certificates(results: Results) -> list[str]:
    """Return one line for each way in which exact values of a run are proven, and its count."""
    found = [k.accuracy.certificate for k in results.kernels if k.accuracy]
    lines = [certificate(one) if one else "certificate: not recorded" for one in found]
    return [f"{line} ({lines.count(line)} of {len(lines)})" for line in dict.fromkeys(lines)]


def row(result: KernelResult) -> tuple[str, ...]:
    """Return one line of the summary: which formula, max ULP by region, special values, verdict."""
    regions = {}
    if result.accuracy:
        regions = {r.region: figure(r.max_error_ulp) for r in result.accuracy.regions if r.count}
    return (
        result.label + (" *" if result.simulated else ""),
        result.operator,
        result.format,
        result.formula_found.found if result.formula_found else "-",
        *(regions.get(name, "-") for name in REGION_KEYS),
        _ratio(result),
        special(result),
        result.contract,
        LABELS[result.status],
    )


def _ratio(result: KernelResult) -> str:
    """Return the largest error over its derived bound as the table shows it."""
    return figure(largest_ratio(result))


def largest_ratio(result: KernelResult) -> float | None:
    """Return the largest error over its derived bound, gradients included; None without bounds."""
    bounds = [result.bound, *(gradient.bound for gradient in result.gradients)]
    return max((bound.max_ratio for bound in bounds if bound), default=None)


def speed(found: Speed) -> str:
    """Return the time an element, the case and the time of a call, and how far it scatters."""
    threads = ""
    if found.threads:
        threads = f", {found.threads} {'thread' if found.threads == 1 else 'threads'}"
    unit, size = ("ms", 1e3) if found.call_us >= 1e4 else ("µs", 1.0)
    call, low, high = (figure(us / size) for us in (found.call_us, found.low_us, found.high_us))
    return (
        f"{figure(found.element_ns)} ns an element: {found.case} in {call} {unit} "
        f"({low} to {high}){threads}"
    )


def special(result: KernelResult) -> str:
    """Return what is unusual among the special values: the wrong ones and the noted ones."""
    if not result.special_values:
        return "-"
    odd = [s for s in result.special_values if s.status is not FindingStatus.PASSED]
    nan_at = [
        s
        for s in result.special_values
        if s not in odd and "nan" in s.actual and "nan" not in s.input
    ]
    if not odd and not nan_at:
        return "right"
    shown = [f"{s.input.split(' ')[0]} → {'/'.join(s.actual)}" for s in (*odd, *nan_at)]
    return "; ".join(dict.fromkeys(shown))
