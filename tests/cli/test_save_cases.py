"""``gelu-verify check --save-cases``: a failed case is kept, and run first from then on."""

import json

import pytest

from tests.cli.command import here

KERNELS = """
import torch
from torch.nn import functional

def sound(x, weight, bias):
    return functional.gelu(functional.linear(x, weight, bias))

def swaps_rows(x, weight, bias):
    result = sound(x, weight, bias)
    return result.flip(-2) if result.shape[-2] == 33 else result
"""
CASE = "m=33,k=20,n=17,values=indexed,layout.x=sliced,seed=3"
FUSED = ("--operator", "linear_gelu", "--format", "bf16", "--in-process")


@pytest.fixture
def run(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "k.py").write_text(KERNELS)
    return lambda *words: here(capsys, monkeypatch, "check", *words)


def cases_of(path):
    (result,) = json.loads(path.read_text())["kernels"]
    return [one["case"] for one in result["bound"]["by_case"]]


def test_failed_case_is_saved_and_run_first_from_then_on(run, tmp_path):
    path = tmp_path / "reports" / "fused_cases.jsonl"
    path.parent.mkdir()
    words = ("k.py:swaps_rows", *FUSED, "--case", CASE, "--case", "m=7,k=20,n=17")
    done = run(*words, "--save-cases", str(path))
    assert done.status == 1
    assert "1 new cases in" in done.err
    (line,) = path.read_text().splitlines()
    saved = json.loads(line)
    assert (saved["case"], saved["operator"], saved["kernel"]) == (
        CASE,
        "linear_gelu",
        "k.py:swaps_rows",
    )
    assert "0 new cases in" in run(*words, "--save-cases", str(path)).err
    done = run("k.py:sound", *FUSED, "--sweep", "quick", "--json", "r.json")
    assert done.status == 0
    assert cases_of(tmp_path / "r.json")[0] == CASE


def test_nothing_is_written_unless_asked_for(run, tmp_path):
    assert run("k.py:swaps_rows", *FUSED, "--case", CASE).status == 1
    assert {path.name for path in tmp_path.iterdir()} <= {"k.py", "__pycache__"}


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("torch-erf", "--save-cases", "c.jsonl"), "expected a kernel of a fused operator"),
        (("k.py:sound", *FUSED, "--save-cases", "k.py"), "stored cases: got k.py line"),
        (("k.py:sound", *FUSED, "--save-cases", "."), "expected a file that can be written"),
    ],
)
def test_file_that_cannot_be_added_to_is_told_before_the_checks(run, words, message):
    done = run(*words)
    assert done.status == 2
    assert message in done.err
