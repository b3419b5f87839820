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


def test_patterns_done_and_time_left_are_shown_when_a_campaign_runs(monkeypatch):
    file = io.StringIO()
    terminal = console.Console(file=file, force_terminal=True, width=160, color_system=None)
    monkeypatch.setattr(console, "Console", lambda **_: terminal)
    monkeypatch.setattr(progress, "_PATIENCE_SECONDS", -1.0)
    clock = iter([0.0, 0.0, 100.0, 200.0])
    monkeypatch.setattr(progress.time, "monotonic", lambda: next(clock, 300.0))
    with progress.bar([job("fp32")]) as bar:
        bar.on_patterns(0, 1000, 4000)  # from the ledger
        bar.on_patterns(0, 2000, 4000)
        assert "2,000 of 4,000 inputs, 0:06:40 left" in bar.progress.tasks[0].fields["detail"]
        bar(0, "loading")
        assert bar.progress.tasks[0].fields["detail"] == ""
    assert "f gelu fp32: all inputs" in file.getvalue()


@pytest.mark.parametrize(
    ("seconds", "text"), [(0.4, "0:00:00"), (59.6, "0:01:00"), (9e4, "25:00:00")]
)
def test_duration_is_hours_minutes_seconds(seconds, text):
    assert progress._duration(seconds) == text
