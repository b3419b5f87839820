"""``gelu-verify check``: as a new user would try it, in a folder of their own."""

import json
import shlex

import pytest
import torch

from tests.cli.command import KERNELS, here, process

FAST = ("--format", "fp32", "--sweep", "quick")
ALL = ("--format", "fp32", "--sweep", "exhaustive")


@pytest.fixture
def run(tmp_path, monkeypatch, capsys):
    """Run the command in this process, in a folder with ``k.py``."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "k.py").write_text(KERNELS)
    return lambda *words: here(capsys, monkeypatch, "check", *words)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "kernel: got none, expected at least one. Name one, or give --all."),
        (["torch-eff"], "Did you mean torch-erf?"),
        (["torch-erf", "--all"], "kernel: got torch-erf and --all"),
        (["k.py:sound", "--format", "fp31"], "Did you mean fp32?"),
        (
            ["--all", "--operator", "attention", "--format", "fp8_e5m2"],
            "got none registered for att",
        ),
        (["k.py:sound", "--format", "fp32,"], "format: got ''"),
        (["k.py:sound", "--contract", "cancelled"], "Did you mean cancelling?"),
        (["k.py:sound", "--formula", "tnh"], "Did you mean tanh?"),
        (["k.py:sound", "--formula", "none"], "torch's approximate='none' is the erf formula."),
        (["k.py:sound", "--operator", "gel"], "Did you mean gelu?"),
        (["torch-linear-gelu", "--sweep", "exhaustive"], "got exhaustive for linear_gelu"),
        (["torch-linear-gelu", "--case", "m=3"], "case: got no k, expected m, k, n."),
        (["torch-erf", "--case", "m=3"], "got 'm=3' for gelu, expected a fused operator"),
        (["k.py:sound", "--device", "cuda0"], "Did you mean cuda?"),
        (["k.py:sound", "--device", "cuda:x"], "device: got 'cuda:x'"),
        (["k.py:sound", "--device", "cpu:1"], "device: got 'cpu:1'"),
        (["k.py:sound", "--sweep", "standart"], "Did you mean standard?"),
        (["k.py:sound", "--seed", "-1"], "seed: got -1"),
        (["k.py:sound", "--seed", "99999999999999999999999"], "seed: got 9999"),
        (["k.py:sound", "--timeout", "0"], "Invalid value for '--timeout'"),
        (["k.py:sound", "--timeout", "nan"], "Invalid value for '--timeout'"),
        (["missing.py:f"], "kernel file: got missing.py, expected an existing .py file"),
        (["k.py"], "Add ':' and the function."),
        (["k.py:sound", "--format", "bf16", "--input", "junk"], "input: got 'junk'"),
        (["k.py:sound", "--format", "bf16", "--input", "0x12345"], "a pattern of 16 bits"),
        (["k.py:sound", "--format", "bf16", "--input", "0xGG"], "input: got '0xGG'"),
        (["k.py:sound", "--format", "bf16", "--input", ""], "input: got ''"),
        (["k.py:sound", "--input", "1,2,3"], "input: got the number of arguments of no operator"),
        (["k.py:sound", "--json", "."], "expected a file that can be written"),
        (["k.py:sound", "--json", "k.py/x.json"], "output: got k.py/x.json"),
        (["k.py:sound", "--json", "/proc/x.json"], "output: got /proc/x.json"),
        (["k.py:sound", "--json", "a", "--markdown", "a"], "expected two files"),
        (["k.py:sound", "--json", "-", "--markdown", "-"], "expected two files"),
        (["k.py:sound", "--ledger", "l"], "ledger: got l, expected --sweep exhaustive of fp32"),
        (["k.py:sound", "--workers", "2", *FAST], "workers: got 2, expected --sweep exhaustive"),
        (["k.py:sound", "--scheduler", "tcp://h:1", "--format", "bf16"], "scheduler: got tcp"),
        (["k.py:sound", "--workers", "0"], "Invalid value for '--workers'"),
        (["k.py:sound", "k.py:prints", "--workers", "2", "--in-process"], "in processes of its"),
        (["k.py:sound", "--workers", "2", "--in-process", *ALL], "in processes of its own"),
        (["k.py:sound", "--workers", "2", "--scheduler", "h", *ALL], "and --scheduler, expected"),
        (["k.py:sound", "--ledger", "l", "--sweep", "exhaustive"], "several kernels or formats"),
        (["k.py:sound", "k.py:prints", "--ledger", "l", *ALL], "several kernels or formats"),
        (["k.py:sound", "--ledger", "k.py", *ALL], "ledger k.py: got a file that SQLite cannot"),
    ],
)
def test_one_line_and_status_2_when_a_word_is_wrong(run, words, message):
    done = run(*words)
    assert (done.status, done.out) == (2, "")
    assert done.err.startswith("error: ")
    assert message in done.err
    assert done.err.count("\n") == 1


def test_one_line_and_status_2_when_the_child_finds_the_fault(tmp_path):
    (tmp_path / "bad.py").write_text("def f(x) return x")
    done = process("check", "bad.py:f", *FAST, cwd=tmp_path)
    assert (done.status, done.out) == (2, "")
    assert done.err.startswith("error: kernel file bad.py: got SyntaxError on import")
    assert done.err.count("\n") == 1


def test_signature_is_refused_when_the_function_takes_two(run):
    done = run("k.py:two", "--in-process", *FAST)
    assert done.status == 2
    assert "got signature (x, y), expected to be called as (x)" in done.err


@pytest.mark.skipif(torch.cuda.is_available(), reason="this machine has a CUDA device")
def test_status_is_3_when_the_device_is_missing(run):
    done = run("k.py:sound", "--device", "cuda", "--in-process", *FAST)
    assert done.status == 3
    assert "expected a machine with a CUDA device. Use --device cpu." in " ".join(done.out.split())


def test_status_is_0_and_files_are_written_when_all_hold(run, tmp_path):
    done = run(
        "k.py:sound", "--in-process", *FAST, "--json", "deep/r.json", "--markdown", "r.md"
    )  # fmt: skip
    assert (done.status, done.err) == (0, "")
    assert "k.py:sound  gelu  fp32  cpu  passed  cancelling" in done.out
    saved = json.loads((tmp_path / "deep" / "r.json").read_text())
    assert [k["status"] for k in saved["kernels"]] == ["passed"]
    assert "| k.py:sound | gelu | fp32 | erf |" in (tmp_path / "r.md").read_text()
    assert {p.name for p in tmp_path.iterdir()} <= {"deep", "k.py", "r.md", "__pycache__"}


def test_only_json_is_on_stdout_when_asked_and_the_kernel_prints(run, tmp_path):
    done = run("k.py:prints", "--in-process", *FAST, "--json", "-")
    assert json.loads(done.out)["kernels"][0]["name"] == "k.py:prints"
    assert "KERNEL SPEAKS" in done.err
    child = process("check", "k.py:prints", *FAST, "--json", "-", cwd=tmp_path)
    assert json.loads(child.out)["kernels"][0]["status"] == "passed"
    assert (child.status, child.err) == (0, "")


def test_only_markdown_is_on_stdout_when_asked(run):
    done = run("k.py:sound", "--in-process", *FAST, "--markdown", "-")
    assert done.out.startswith("# gelu_verify results\n")


def test_command_of_a_finding_shows_it_again_when_run(run):
    done = run("k.py:wrong_at_one", "--in-process", *FAST)
    assert done.status == 1
    commands = [line.strip() for line in done.out.splitlines() if "gelu-verify check" in line]
    shown = "x = -1.0 (0xBF800000)"
    assert shown in done.out
    chosen = {c for c in commands if c.endswith("--input 0xBF800000") and c.count("--input") == 1}
    assert chosen == {
        "gelu-verify check k.py:wrong_at_one --operator gelu --formula erf --format fp32 "
        "--contract cancelling --sweep quick --input 0xBF800000"
    }
    again = run(*shlex.split(chosen.pop())[2:], "--in-process")
    assert again.status == 1
    assert f"at {shown}" in again.out
    assert "✗ accuracy: 64 of 64 inputs break cancelling" in again.out
    assert "✗ invariants: sign of the result is not the sign of x" in again.out
    # In a child, as a user types it.
    child = process(*shlex.split(next(c for c in commands if c.endswith("0xBF800000")))[1:])
    assert child.status == 1
    assert f"at {shown}" in child.out


@pytest.mark.parametrize("text", ["-1", "-1.0", "0xBF800000"])
def test_input_may_be_a_decimal_when_replayed(run, text):
    done = run("k.py:wrong_at_one", "--in-process", *FAST, "--input", text)
    assert done.status == 1
    assert "at x = -1.0 (0xBF800000)" in done.out
    assert run("k.py:wrong_at_one", "--in-process", *FAST, "--input", "1").status == 0


@pytest.mark.parametrize("text", ["nan", "inf", "-inf", "-0.0", "1e-45", "1e400"])
def test_special_input_holds_when_the_kernel_is_sound(run, text):
    assert run("k.py:sound", "--in-process", *FAST, "--input", text).status == 0


def test_no_fault_is_missed_when_a_known_one_is_outside_the_input(run):
    done = run("torch-erf", "--in-process", "--format", "fp32", "--input", "1.0")
    assert done.status == 0
    assert "no longer shows" not in done.out


def test_status_is_1_when_a_kernel_exits_with_0(run):
    done = run("k.py:sys_exits", "--in-process", *FAST)
    assert done.status == 1
    assert "CRASHED" in done.out
    assert "SystemExit: 0" in done.out


def test_status_is_1_when_a_kernel_hangs(tmp_path):
    (tmp_path / "k.py").write_text(KERNELS)
    done = process("check", "k.py:hangs", *FAST, "--timeout", "2", cwd=tmp_path)
    assert done.status == 1
    assert "TIMED OUT" in done.out
    assert "no answer within 2 s" in done.out
    assert done.err == ""


def test_name_is_text_when_it_looks_like_markup(run, tmp_path):
    for name in ("[bold]x[/bold].py", "[", "[red"):
        folder = tmp_path / "[red]"
        folder.mkdir(exist_ok=True)
        file = folder / f"{name}.py"
        if "/" in name:
            file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(KERNELS)
        kernel = f"{file.relative_to(tmp_path)}:sound"
        done = run(kernel, kernel, "--in-process", *FAST)
        assert done.status == 0
        assert done.out.count(f"{kernel}  gelu  fp32") == 2


def test_output_fits_100_columns_when_it_is_no_terminal(run):
    done = run("k.py:wrong_at_one", "k.py:sound", "torch-erf", "--in-process", *FAST)
    lines = [line for line in done.out.splitlines() if "gelu-verify check" not in line]
    assert max(map(len, lines)) <= 100


def test_formats_may_be_spaced_and_repeated_when_listed(run):
    done = run("k.py:sound", "--in-process", "--format", "fp32, fp32", "--sweep", "quick")
    assert done.out.count("gelu  fp32") == 1
