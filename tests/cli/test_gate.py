"""``gelu-verify gate`` and ``baseline``, as CI runs them."""

import json
import subprocess
import sys

import pytest

from gelu_verify.hunt import hard_cases
from tests.cli.command import here

KERNEL = """
import torch

def gelu(x):
    assert x.is_floating_point(), "integers are refused"
    wide = x.double()
    y = 0.5 * wide * torch.erfc(-wide * 0.7071067811865476)
    y = torch.where(x == -torch.inf, 0.0, y)
    return torch.copysign(y, wide).to(x.dtype).detach()
"""
CONFIG = """
[tool.gelu_verify]
formats = ["bf16"]

[[tool.gelu_verify.kernels]]
kernel = "k.py:gelu"
"""


@pytest.fixture
def project(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("GITHUB_ACTIONS", "GITHUB_STEP_SUMMARY"):
        monkeypatch.delenv(name, raising=False)
    (tmp_path / "k.py").write_text(KERNEL)
    (tmp_path / "pyproject.toml").write_text(CONFIG)
    return tmp_path


@pytest.fixture
def run(project, capsys, monkeypatch):
    return lambda *words: here(capsys, monkeypatch, *words)


def test_gate_fails_when_one_constant_is_changed(run, project, monkeypatch):
    first = run("gate")
    assert first.status == 1
    assert "no baseline of k.py:gelu gelu erf bf16" in first.out
    accepted = run("baseline", "accept")
    assert accepted.status == 0
    assert "1 written, 0 as before" in accepted.out
    assert "0.5 ULP faithful" in run("baseline", "show").out
    (project / "k.py").write_text(KERNEL.replace("0.7071067811865476", "0.70710"))
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(project / "summary.md"))
    outputs = ("--junit", "g.xml", "--markdown", "g.md", "--json", "g.json")
    done = run("gate", *outputs)
    assert done.status == 1
    assert "deep_tail: largest error 0.666 ULP, was 0.499 ULP" in done.out
    assert "28 of 65,536 results changed" in done.out
    assert "at: x = -10.875 (0xC12E)" in done.out
    assert "reproduce: gelu-verify gate --kernel k.py:gelu --formats bf16" in done.out
    assert "::error file=k.py,line=4,title=gelu_verify%3A k.py%3Agelu gelu bf16 cpu::" in done.out
    assert (project / "summary.md").read_text() == (project / "g.md").read_text()
    assert 'failures="1"' in (project / "g.xml").read_text()
    found = json.loads((project / "g.json").read_text())
    assert found["compared"][0]["verdict"] == "regressed"
    # It keeps its contract: whoever wants it so accepts it, also from the file of another machine.
    assert run("baseline", "accept", "--results", "g.json").status == 0
    assert "0.666 ULP" in run("baseline", "show").out


def test_broken_contract_fails_whatever_was_accepted_and_is_not_accepted(run, project):
    (project / "pyproject.toml").write_text(CONFIG + 'contract = "correctly_rounded"\n')
    done = run("gate", "--json", "g.json")
    assert done.status == 1
    assert "break correctly_rounded" in done.out
    accepted = run("baseline", "accept", "--results", "g.json")
    assert accepted.status == 1
    assert "that is failed, expected one that keeps correctly_rounded" in accepted.out
    assert not (project / "reports").exists() or not list((project / "reports").rglob("*.json"))


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--formats", "bf61"), "option: formats[0]: format: got 'bf61'"),
        (("--sweep", "quik"), "Did you mean quick?"),
        (("--kernel", "k.py:gel"), "Did you mean k.py:gelu?"),
        (("--config", "absent.toml"), "configuration: got absent.toml, No such file"),
        (("--json", "a", "--junit", "a"), "output: got a twice"),
        (("--junit", "/proc/g.xml"), "output: got /proc/g.xml"),
        (("--seed", "-1"), "option: seed: got '-1'"),
    ],
)
def test_wrong_usage_is_told_in_one_line_before_anything_runs(run, words, message):
    done = run("gate", *words)
    assert (done.status, done.out) == (2, "")
    assert message in done.err
    assert done.err.startswith("error: ")
    assert done.err.count("\n") == 1


def test_unknown_key_of_the_configuration_names_the_nearest(run, project):
    (project / "pyproject.toml").write_text(CONFIG.replace("formats", "format"))
    done = run("gate")
    assert (done.status, done.out) == (2, "")
    assert "configuration pyproject.toml: key format: got 'format'" in done.err
    assert "Did you mean formats?" in done.err


def test_damaged_baseline_ends_the_gate_before_anything_runs(run, project):
    place = project / "reports" / "baselines" / "cpu-avx2" / "x.json"
    place.parent.mkdir(parents=True)
    place.write_text('{"schema_version": 2, "digest": "0"}')
    done = run("gate")
    assert (done.status, done.out) == (2, "")
    assert "which was altered or damaged" in done.err


def test_absent_device_is_no_pass(run):
    done = run("gate", "--devices", "cuda:99")
    assert done.status == 3
    assert "nothing could be checked here" in done.out


def test_two_gates_at_once_leave_whole_files(project):
    command = [sys.executable, "-m", "gelu_verify"]
    accepting = [
        subprocess.Popen([*command, "baseline", "accept"], stdout=subprocess.PIPE) for _ in range(2)
    ]
    assert [one.wait() for one in accepting] == [0, 0]
    gates = [
        subprocess.Popen([*command, "gate", "--json", "g.json"], stdout=subprocess.PIPE)
        for _ in range(2)
    ]
    assert [one.wait() for one in gates] == [0, 0]
    assert json.loads((project / "g.json").read_text())["compared"][0]["verdict"] == "held"
    (folder,) = (project / "reports" / "baselines").iterdir()
    assert len(list(folder.iterdir())) == 1


def test_failing_example_is_saved_and_replayed_first(run, project):
    wrong = KERNEL.replace(
        "y = torch.where", "y = torch.where((x > 2.0) & (x < 1e6), 2 * y, y)\n    y = torch.where"
    )
    (project / "k.py").write_text(wrong)
    saved = project / "reports" / "hard_cases.jsonl"
    words = ("gate", "--formats", "fp32", "--sweep", "quick", "--profile", "nightly")
    done = run(*words, "--examples", "100", "--save", saved)
    assert done.status == 1
    seed = done.err.partition("seed ")[2].split()[0]
    assert int(seed) > 0
    assert f"an example of Hypothesis (seed {seed}) breaks cancelling" in done.out
    assert f"--seed {seed}" in done.out
    cases = hard_cases.read(saved)
    assert cases
    assert all(2.0 < float(case.inputs[0]) < 1e6 for case in cases)
    again = run("gate", "--formats", "fp32", "--sweep", "quick", "--examples", "0", "--json", "g")
    assert "hard case, accuracy: " in again.out
    replayed = json.loads((project / "g").read_text())["replayed"]
    assert replayed[0]["status"] == "failed"
