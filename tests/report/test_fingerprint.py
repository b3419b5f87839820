"""The fingerprint in the terminal and in Markdown."""

import io

from rich.console import Console

from gelu_verify.records import ArithmeticEvidence, Fingerprint
from gelu_verify.report import fingerprint, markdown, terminal
from tests.builders import result, results

_SUMS = {"fp64": 53, "fp32": 24, "fp16": 11, "bf16": 8}


def _record():
    counts = [
        (1, "bits of x", {"bf16": 8}, 8),
        (33, "bits of x", {"bf16": 8}, 8),
        (33, "bits of a sum", _SUMS, 9),
        (64, "bits of x", {"bf16": 8}, 8),
        (64, "bits of a sum", _SUMS, 9),
    ]
    return Fingerprint(
        behaves_like="bf16_partial_sums",
        products="bf16",
        sums="bf16",
        rounding="nearest",
        block=32,
        evidence=tuple(
            ArithmeticEvidence(k=k, quantity=quantity, predicted=predicted, observed=observed)
            for k, quantity, predicted, observed in counts
        ),
    )


def test_lengths_share_a_row_when_they_count_alike():
    assert fingerprint.evidence(_record()) == [
        ("1", "8", "-", "-", "-"),
        ("33, 64", "8", "-", "9", "-"),
    ]
    assert [row[0] for row in fingerprint.predictions(_record())] == [
        "fp64",
        "fp32",
        "fp16",
        "bf16",
    ]


def test_sentence_and_counts_are_shown_when_there_is_a_fingerprint():
    kernel = result("passed", fingerprint=_record())
    said = "bf16 partial sums, rounded every 32 terms: products bf16, sums bf16 (nearest)"
    target = Console(file=io.StringIO(), width=120, highlight=False)
    terminal.show(target, results(kernel))
    shown = target.file.getvalue()
    assert said in shown
    assert "fp32 gives" in shown
    text = markdown.summary(results(kernel))
    assert said in text
    assert "| k | bf16 | 33, 64 | 8 | - | 9 | - |" in text
    assert "Arithmetic" not in markdown.summary(results(result("passed")))
