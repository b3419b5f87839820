"""Isolation: a kernel may do what it likes to its own process."""

import os
import time
from pathlib import Path

import psutil
import pytest

from gelu_verify.errors import UsageError
from gelu_verify.job import plan
from gelu_verify.kernels import isolation
from gelu_verify.kernels.listener import Limits, WorkerError
from gelu_verify.records import Status

HOSTILE = str(Path(__file__).with_name("hostile_kernels.py"))
DIED = "the kernel's process"
AMPLE = Limits(seconds=120.0)


def _jobs(name, *formats):
    return plan(f"{HOSTILE}:{name}", format_names=formats, depth="quick")


def _run(jobs, limits=AMPLE):
    checks = []
    outcome = isolation.run(jobs, limits, lambda index, check: checks.append((index, check)))
    return outcome.results, checks


@pytest.mark.parametrize(
    ("name", "limits", "status", "message"),
    [
        ("segfault", AMPLE, Status.CRASHED, f"{DIED} was killed by signal SIGSEGV"),
        ("exits", AMPLE, Status.CRASHED, "the kernel's process exited with status 3"),
        ("sys_exits", AMPLE, Status.CRASHED, "SystemExit: 0"),
        ("kills_itself", AMPLE, Status.CRASHED, f"{DIED} was killed by signal SIGTERM"),
        ("raises", AMPLE, Status.CRASHED, "ZeroDivisionError: division by zero"),
        ("hangs", Limits(seconds=2.0), Status.TIMED_OUT, "no answer within 2 s. Raise --timeout"),
        ("hoards", Limits(120.0, 3 << 29), Status.CRASHED, f"memory: {DIED} grew to 1."),
    ],
)  # fmt: skip
def test_verdict_is_typed_when_a_kernel_harms_its_process(name, limits, status, message):
    (job,) = _jobs(name, "bf16")[:1]
    (result,), checks = _run([job], limits)
    assert result.status is status
    assert result.findings[-1].check == "memory"
    assert result.findings[-1].message.startswith(message)
    assert result.findings[-1].reproduce.startswith("gelu-verify check ")
    assert checks == [(0, "loading"), (0, "memory")]


def test_only_its_own_format_is_lost_when_one_crashes():
    results, checks = _run([j for j in _jobs("exits", "bf16", "fp32") if not j.via])
    assert [(r.format, r.status) for r in results] == [
        ("bf16", Status.CRASHED),
        ("fp32", Status.PASSED),
    ]
    assert (1, "routes") in checks


def test_what_was_learnt_is_kept_when_a_kernel_dies_late():
    (result,), _ = _run(_jobs("dies_late", "fp32")[:1])
    assert result.status is Status.CRASHED
    assert result.accuracy.count > 10_000
    assert result.formula_found.found == "erf"
    assert [f.check for f in result.findings] == [
        "memory",
        "conduct",
        "accuracy",
        "formula",
        "special_values",
    ]
    assert result.findings[-1].message == "the kernel's process exited with status 5"


def test_events_are_undisturbed_when_a_kernel_prints():
    (result,), _ = _run(_jobs("prints", "bf16")[:1])
    assert result.status is Status.PASSED


def test_crash_is_seen_at_once_when_a_grandchild_holds_the_pipe():
    before = {p.pid for p in psutil.Process().children(recursive=True)}
    started = time.monotonic()
    (result,), _ = _run(_jobs("forks_and_exits", "bf16")[:1], Limits(seconds=250.0))
    assert result.findings[-1].message == "the kernel's process exited with status 4"
    assert time.monotonic() - started < 120
    time.sleep(0.2)
    assert {p.pid for p in psutil.Process().children(recursive=True)} <= before
    sleepers = [p for p in psutil.process_iter(["cmdline"]) if _is_worker(p)]
    assert not sleepers, "the grandchild was left behind"


def _is_worker(process):
    line = " ".join(process.info["cmdline"] or [])
    return "gelu_verify.kernels.worker" in line and process.ppid() == 1


def test_modules_of_the_standard_library_win_when_the_folder_shadows_them(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("queue", "types", "torch", "json"):
        (tmp_path / f"{name}.py").write_text("raise RuntimeError('shadow')")
    (result,), _ = _run(_jobs("sound", "bf16")[:1])
    assert result.status is Status.PASSED


def test_harness_time_is_not_charged_when_the_limit_is_short():
    # The quick fp64 sweep costs more than a second in mpmath; the kernel itself takes milliseconds.
    jobs = plan("torch.ops.aten.sigmoid", format_names=("fp64",), depth="quick")[:1]
    (result,), _ = _run(jobs, Limits(seconds=1.0))
    assert result.status is Status.FAILED


@pytest.mark.parametrize("seconds", [0.0, -1.0, float("nan")])
def test_limit_is_refused_when_it_is_no_time(seconds):
    with pytest.raises(UsageError, match="timeout: got"):
        Limits.default(seconds)


def test_usage_error_travels_when_the_child_finds_it(tmp_path):
    path = tmp_path / "k.py"
    path.write_text("def f(x, y): pass")
    with pytest.raises(WorkerError, match="got signature") as caught:
        _run(plan(f"{path}:f", format_names=("bf16",)))
    assert caught.value.exit_status == 2


def test_environment_is_reported_when_the_child_ran():
    outcome = isolation.run(_jobs("sound", "fp32")[:1], AMPLE, lambda *_: None)
    assert outcome.runtime["instruction_set"]
    assert os.environ.get("TRITON_INTERPRET") in (None, "1")
