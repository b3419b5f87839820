"""The progress bar."""

import io

import pytest
from rich import console

from gelu_verify.cli import progress
from gelu_verify.kernels.spec import KernelSpec
from tests.cases import job


@pytest.mark.parametrize("name", ["[/bold]", "[bold]x[/bold]", "[link=x"])
def test_name_is_text_when_it_looks_like_markup(name, monkeypatch):
    file = io.StringIO()
    terminal = console.Console(file=file, force_terminal=True, width=120, color_system=None)
    monkeypatch.setattr(console, "Console", lambda **_: terminal)
    monkeypatch.setattr(progress, "_PATIENCE_SECONDS", -1.0)
    task = job(spec=KernelSpec(name=name, target="m:k"))
    with progress.bar([task]) as on_check:
        on_check(0, "loading")
        on_check(0, "special_values")
    assert f"{name} gelu bf16: special values" in file.getvalue()


def test_nothing_is_shown_when_it_is_no_terminal(capsys, monkeypatch):
    monkeypatch.setattr(progress, "_PATIENCE_SECONDS", -1.0)
    with progress.bar([job()]) as on_check:
        on_check(0, "loading")
    assert capsys.readouterr() == ("", "")
