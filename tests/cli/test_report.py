"""``gelu-verify report``."""

import pytest

from gelu_verify.report import files
from tests.builders import measured, results
from tests.cli.command import KERNELS, here

pytest.importorskip("jinja2", reason="the extra report is missing")


def test_a_site_is_written_where_it_is_asked_for(capsys, monkeypatch, tmp_path):
    files.write(results(measured(), measured()), tmp_path / "r.json", None)
    monkeypatch.chdir(tmp_path)
    done = here(capsys, monkeypatch, "report", "r.json", "-o", "out")
    assert (done.status, done.err) == (0, "")
    assert done.out == "4 pages of 2 results: out/index.html\n"
    assert {p.name for p in (tmp_path / "out" / "assets").iterdir()} == {
        "plotly.min.js", "site.css", "site.js"
    }  # fmt: skip


def test_a_check_writes_the_site_of_its_run(capsys, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "k.py").write_text(KERNELS)
    (tmp_path / "pyproject.toml").write_text("[project]\nname = 'theirs'\n")
    words = ("k.py:sound", "--format", "bf16", "--in-process", "--html", "site")
    done = here(capsys, monkeypatch, "check", *words)
    assert done.status == 0
    (page,) = (tmp_path / "site" / "kernels").iterdir()
    assert "k.py:sound keeps the contract cancelling in bf16" in page.read_text()
    (tmp_path / "file").write_text("")
    done = here(capsys, monkeypatch, "check", *words[:-1], "file")
    assert (done.status, done.err.count("\n")) == (2, 1)


def test_wrong_use_is_one_line(capsys, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    for words, told in [
        (["missing.json"], "No such file"),
        ([], "got no result"),
        (["--figures", "gif"], "expected one of png, svg"),
    ]:
        done = here(capsys, monkeypatch, "report", *words)
        assert done.status == 2
        assert told in done.err
        assert done.err.count("\n") == 1
