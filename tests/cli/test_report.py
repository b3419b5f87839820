"""``gelu-verify report``."""

import pytest

from gelu_verify.report import files
from tests.builders import measured, results
from tests.cli.command import here

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
