"""Verdicts, coverage and changes in words, for the table and the pages alike."""

from __future__ import annotations

from gelu_verify.baseline import Measurement
from gelu_verify.gate import ratchet
from gelu_verify.gate.ratchet import Weight
from gelu_verify.records import PAIRS, Accuracy, FindingStatus, KernelResult, Status
from gelu_verify.report import gate
from gelu_verify.report.numbers import figure
from gelu_verify.report.site.entry import Entry

_ENDINGS = {
    Status.CRASHED: "crashed while it was checked",
    Status.TIMED_OUT: "did not finish in time",
    Status.UNAVAILABLE: "could not be run here",
}


def verdict(result: KernelResult) -> str:
    """Return the verdict in a sentence."""
    if result.status in _ENDINGS:
        why = next((f.message for f in result.failures or result.findings), "")
        return f"{result.label} {_ENDINGS[result.status]}{': ' + why if why else ''}."
    if result.status is Status.FAILED:
        return f"{result.label} breaks the contract {result.contract}: {_reasons(result)}."
    told = f"{result.label} keeps the contract {result.contract} in {result.format}"
    if result.status is Status.KNOWN_ISSUE:
        count = sum(f.status is FindingStatus.KNOWN_ISSUE for f in result.findings)
        told += f", apart from {count} known {'issue' if count == 1 else 'issues'}"
    return f"{told}: {_size(result)}."


def _reasons(result: KernelResult) -> str:
    """Return what failed, the first message whole."""
    first, *more = result.failures or result.findings
    rest = f"; {len(more)} more below" if more else ""
    return f"{first.check.replace('_', ' ')}: {first.message}{rest}"


def _size(result: KernelResult) -> str:
    """Return how far off the kernel is at most, and over what."""
    parts = []
    if result.accuracy:
        a = result.accuracy
        parts.append(f"at most {figure(a.max_error_ulp)} ULP, at {a.worst_input}")
        parts.append(f"over {coverage(a)}")
    if result.bound:
        share = figure(result.bound.max_ratio)
        parts.append(f"at most {share} of its derived bound in {result.bound.cases} cases")
    return ", ".join(parts) or "its special values are right"


def space(accuracy: Accuracy, width: int) -> int:
    """Return how many inputs there are: patterns of a format of ``width`` bits, or pairs."""
    return 1 << (2 * width if accuracy.sweep == PAIRS else width)


def coverage(accuracy: Accuracy, width: int | None = None) -> str:
    """Return the count of inputs; with the width of the format, of how many.

    A sweep with other arguments beside x runs through each pattern of x more than once: then only
    the number run is told.
    """
    if width is None or (len(accuracy.worst.inputs) > 1 and accuracy.sweep != PAIRS):
        every = ", every bit pattern of x" if accuracy.exhaustive else ""
        return f"{accuracy.inputs:,} inputs{every}"
    kind = "pairs" if accuracy.sweep == PAIRS else "inputs"
    return f"{accuracy.inputs:,} of {space(accuracy, width):,} {kind}"


def change(entry: Entry) -> tuple[str, str, str]:
    """Return the change against the baseline: kind, in short, and in full.

    The kind is one of none, held, better, worse, other. A gate's own verdict goes first.
    """
    if entry.compared:
        short = gate.AGAINST[entry.compared.verdict][0]
        kinds = {"held": "held", "improved": "better", "-": "none"}
        kind = "worse" if entry.compared.verdict.fails else kinds.get(short, "other")
        return kind, short, entry.compared.message
    if entry.before is None:
        return "none", "no baseline", "There is no baseline of this kernel on this class of device."
    now = Measurement.of(entry.result)
    if not ratchet.same_inputs(entry.before, now):
        return "other", "other inputs", "The baseline was measured at other inputs."
    facts = ratchet.facts(entry.before, now)
    full = "; ".join(fact.text for fact in facts) or "Every figure is that of the baseline."
    worse = sum(fact.weight is Weight.WORSE for fact in facts)
    if worse:
        return "worse", f"{worse} worse", full
    return ("better", "better", full) if facts else ("held", "held", full)
