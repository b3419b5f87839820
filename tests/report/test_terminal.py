"""Results for the terminal."""

import io

import pytest
from rich.console import Console

from gelu_verify import pipeline
from gelu_verify.report import terminal
from tests import faulty_kernels as kernels
from tests.builders import accuracy, finding, result, results
from tests.cases import job


def _shown(*kernels_):
    target = Console(file=io.StringIO(), width=100, highlight=False)
    terminal.show(target, results(*kernels_))
    return target.file.getvalue()


@pytest.mark.parametrize("name", ["[bold]x[/bold]", "[/red]", "[link=http://x]y", "a[b"])
def test_name_is_text_when_it_looks_like_markup(name):
    text = _shown(result("passed", name=name), result("failed", name=name))
    assert text.count(name) == 4  # two blocks and two rows


def test_message_is_text_when_it_looks_like_markup():
    found = finding("accuracy", "failed", "got [/bold]", input="x = [1]", reproduce="run [/x]")
    text = _shown(result("failed", found))
    assert all(part in text for part in ("✗ accuracy: got [/bold]", "at x = [1]", "run [/x]"))


def test_command_is_one_line_when_it_is_long():
    command = "gelu-verify check " + "a" * 200
    text = _shown(result("failed", finding("accuracy", "failed", "m", reproduce=command)))
    assert command in [line.strip() for line in text.splitlines()]


@pytest.mark.parametrize("status", ["crashed", "timed_out", "unavailable"])
def test_block_is_shown_when_nothing_was_measured(status):
    kernel = result(status, finding("loading", "skipped", "no device"), special=False)
    text = _shown(kernel)
    assert status.replace("_", " ") in text.lower()
    assert "- loading: no device" in text


def test_counts_are_summed_when_there_are_several():
    text = _shown(result("passed"), result("passed"), result("timed_out"), result("known_issue"))
    assert text.splitlines()[-1] == "2 passed, 1 known issue, 1 TIMED OUT"


def test_everything_fits_when_a_real_result_is_shown():
    done = pipeline.check(job("fp32"), lambda *_: None, kernels.guarded)
    text = _shown(done)
    assert max(map(len, text.splitlines())) <= 100
    for part in ("computes    erf", "max error", "deep_tail", "by guard", "✓ routes",
                 "would hold  saturating"):  # fmt: skip
        assert part in text, part
    assert "saturation: " not in text  # shown once, as a fact


def test_name_is_whole_when_it_is_longer_than_its_column():
    name = "triton-sigmoid-backward-with-a-guard"
    text = _shown(result("passed", name=name), result("failed", name=name))
    assert "…" not in text


@pytest.mark.parametrize(
    ("level", "text"),
    [
        ("certified", "certified: why"), ("partly_certified", "partly certified: why"),
        ("analysis_only", "analysis only: why"), ("uncertified", "UNCERTIFIED: why"),
        ("oracle", "oracle: why"),
    ],
)  # fmt: skip
def test_proof_is_named_when_there_are_figures(level, text):
    kernel = result("passed", accuracy=accuracy(level))
    assert f"  reference   {text}\n" in _shown(kernel)
    assert f"reference {text} (2 of 2)\n" in _shown(kernel, kernel)
