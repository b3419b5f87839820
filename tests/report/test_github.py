from pathlib import Path

import pytest

from gelu_verify.errors import UsageError
from gelu_verify.report import github
from tests.builders import finding, result
from tests.report.gates import NASTY, broken, gate

CONFIG = Path("pyproject.toml")


def test_annotation_is_beside_the_function(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("GITHUB_WORKSPACE", str(tmp_path))
    (tmp_path / "k.py").write_text("import torch\n\n\ndef f(x):\n    return x\n")
    lines = github.commands(broken(), CONFIG)
    assert lines[0].startswith("::error file=k.py,line=4,title=gelu_verify%3A k.py%3Af gelu bf16")
    assert "%0Aat: x = -8.625 (0xC10A)%0Aby: contract cancelling" in lines[0]
    assert any(line.startswith("::error file=pyproject.toml,line=1,") for line in lines)
    assert any(line.startswith("::warning title=gelu_verify::warning: the base") for line in lines)


@pytest.mark.parametrize("source", ["def f(x:", "\x00", "(" * 5000, ""])
def test_annotation_names_the_file_when_it_cannot_be_parsed(tmp_path, monkeypatch, source):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "k.py").write_text(source)
    assert github.commands(broken(), CONFIG)[0].startswith("::error file=k.py,line=1,")


def test_no_text_can_begin_a_command_of_its_own():
    bad = result("crashed", finding("a,b:c", "failed", NASTY), name=NASTY, special=False)
    lines = github.commands(gate((bad,)), Path("a,b:c%.toml"))
    assert len(lines) == 1
    assert not set("\r\n") & set(lines[0])
    head, _, message = lines[0].partition("::error ")[2].partition("::")
    assert head.startswith("file=a%2Cb%3Ac%25.toml,line=1,title=")
    assert head.count(",") == 2
    assert "%250A::error::%0D%0A" in message


def test_summary_is_added_to_the_file_of_the_job(tmp_path, monkeypatch):
    path = tmp_path / "summary.md"
    path.write_text("before\n")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(path))
    github.append_summary("after\n")
    assert path.read_text() == "before\nafter\n"
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(tmp_path))
    with pytest.raises(UsageError, match="Unset it"):
        github.append_summary("x")
    monkeypatch.delenv("GITHUB_STEP_SUMMARY")
    github.append_summary("nothing happens")
