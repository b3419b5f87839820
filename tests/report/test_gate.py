from io import StringIO

from rich.console import Console

from gelu_verify.report import gate
from tests.report.gates import broken, passed


def shown(results):
    out = StringIO()
    gate.show(Console(file=out, width=100, highlight=False), results)
    return out.getvalue()


def test_failure_names_all_that_it_must():
    text = shown(broken())
    for part in (
        "✗ k.py:f gelu bf16 cpu",  # what
        "at: x = -8.625 (0xC10A)",  # where
        "3 of 65,536 inputs break cancelling; worst 9.5 ULP",  # how far
        "by: contract cancelling",
        "accuracy holds: tail_accurate; 2 ULP at most",
        "reproduce: gelu-verify check k.py:f --input 0xC10A",
        "✗ worse gelu bf16 cpu",
        "at: x = -4.5 (0xC090)",
        "regressed: tail: largest error 3 ULP, was 2 ULP",
        "by: baseline reports/baselines/worse.json",
        "reproduce: gelu-verify gate --kernel worse",
        "hard case, accuracy: 3 of 65,536",
        "disappeared: this is disappeared",
        "warning: the baseline is of torch 2.11, this is 2.12 (1 of 5)",
        "not run here: away gelu bf16 cpu",
    ):
        assert part in text


def test_table_fits_100_columns():
    lines = shown(broken()).splitlines()
    assert max(len(line) for line in lines if "reproduce" not in line) <= 100
    assert lines[0].split() == ["kernel", "operator", "format", "device", "max", "error",
                                "contract", "verdict", "baseline"]  # fmt: skip


def test_passing_gate_says_what_it_measured():
    text = shown(passed())
    assert "✗" not in text
    assert "measured now: 1 inputs in 1 sweeps (0 of every bit pattern), 0 hard cases" in text
    assert "profile ci, seed 7" in text
    assert "gate passed: 1 results" in text


def test_markdown_shows_any_text_as_it_is():
    text = gate.as_markdown(broken())
    assert text.startswith("## gelu_verify: gate FAILED: 4 results, 2 break")
    rows = [line for line in text.splitlines() if line.startswith("|")]
    assert {row.replace("\\|", "").count("|") for row in rows} == {9}
    assert "    at: x = -8.625 (0xC10A)" in text
    assert "\n::error" not in text
