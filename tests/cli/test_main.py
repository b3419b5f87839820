"""The command line as a whole."""

import subprocess
import sys
from pathlib import Path

import pytest
from typer.main import get_command

from gelu_verify import cli
from tests.cli.command import here, process


def test_version_is_printed_when_asked(capsys, monkeypatch):
    assert here(capsys, monkeypatch, "--version")[:2] == (0, "gelu-verify 0.1.0\n")


@pytest.mark.parametrize(
    ("words", "parts"),
    [
        (["--help"], ["check", "list", "gate", "baseline", "Exit status: 0 all held"]),
        (["-h"], ["check", "list"]),
        (["check", "--help"], ["--operator", "--formula", "--format", "--contract", "--device",
                               "--sweep", "--timeout", "--in-process", "--json", "--input"]),
        (["list", "--help"], ["--json"]),
    ],
)  # fmt: skip
def test_help_tells_all_options_when_asked(capsys, monkeypatch, words, parts):
    done = here(capsys, monkeypatch, *words)
    assert done.status == 0
    assert all(part in " ".join(done.out.split()) for part in parts)


def test_help_shows_every_default_that_its_text_states(capsys, monkeypatch):
    """Brackets are markup to the help's renderer: unescaped, it drops them with what they hold."""
    for name in get_command(cli.app).commands:
        shown = " ".join(here(capsys, monkeypatch, name, "--help").out.replace("│", " ").split())
        for parameter in get_command(cli.app).commands[name].params:
            stated = " ".join((getattr(parameter, "help", None) or "").replace("\\[", "[").split())
            _, found, default = stated.rpartition("[default")
            assert not found or found + default in shown, f"{name} {parameter.name}"


def test_help_is_shown_when_nothing_is_asked(capsys, monkeypatch):
    done = here(capsys, monkeypatch)
    assert done.status == 2
    assert "Usage: gelu-verify" in done.out


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["chek"], "No such command 'chek'"),
        (["check", "k", "--contrct", "x"], "No such option: --contrct"),
        (["check", "k", "--timeout", "soon"], "Invalid value for '--timeout'"),
        (["check", "k", "--seed", "1.5"], "Invalid value for '--seed'"),
        (["check", "k", "--format"], "requires an argument"),
        (["--nothing"], "No such option: --nothing"),
    ],
)
def test_one_line_and_status_2_when_an_option_is_wrong(capsys, monkeypatch, words, message):
    done = here(capsys, monkeypatch, *words)
    assert (done.status, done.out) == (2, "")
    assert done.err.startswith("error: ")
    assert message in done.err
    assert done.err.count("\n") == 1


def test_module_is_the_command_when_run_with_python(tmp_path):
    done = subprocess.run(
        [sys.executable, "-m", "gelu_verify", "--version"],
        capture_output=True, text=True, check=True, cwd=Path(__file__).parents[2],
    )  # fmt: skip
    assert done.stdout == "gelu-verify 0.1.0\n"
    assert process("--version", cwd=tmp_path).out == "gelu-verify 0.1.0\n"


@pytest.mark.parametrize("words", [["--help"], ["check", "--help"], ["list"], ["list", "--json"]])
def test_no_framework_is_loaded_when_nothing_is_computed(words):
    code = (
        "import sys; from gelu_verify import cli; sys.argv = ['gelu-verify', *sys.argv[1:]]\n"
        "try: cli.main()\n"
        "except SystemExit as e: status = e.code\n"
        "heavy = {'torch', 'triton', 'numpy', 'scipy', 'mpmath', 'hypothesis'} & set(sys.modules)\n"
        "print(status, sorted(heavy - {'mpmath'}), file=sys.stderr)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, *words], capture_output=True, text=True, check=True
    )
    assert done.stderr == "0 []\n"


def test_nothing_is_said_when_the_reader_leaves(tmp_path):
    done = subprocess.run(
        f"{sys.executable} -m gelu_verify list --json | head -c 1",
        shell=True, capture_output=True, text=True, check=True, cwd=Path(__file__).parents[2],
    )  # fmt: skip
    assert (done.stdout, done.stderr) == ("[", "")


def test_an_option_is_worded_once_when_commands_share_it():
    commands = get_command(cli.app).commands
    check, hunt = ({o.name: o for o in commands[name].params} for name in ("check", "hunt"))
    shared = set(check) & set(hunt) - {"help"}
    assert {"operator", "formula", "device", "seed", "timeout", "json"} <= shared
    for name in ("operator", "formula", "device"):
        assert check[name].help == hunt[name].help
        assert check[name].default == hunt[name].default
    assert check["kernels"].help == hunt["kernel"].help
