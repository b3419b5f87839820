"""Training in a process of its own: kernels that end it, and a run that is killed."""

import os
import signal
import sqlite3
import subprocess
import sys
import time

import psutil
import pytest

from gelu_verify.convergence import isolated
from gelu_verify.convergence import run as experiments
from gelu_verify.convergence.records import Verdict
from gelu_verify.kernels.listener import Limits
from tests.convergence import kernels
from tests.convergence.experiments import facts, of

AMPLE = Limits(seconds=120.0)


@pytest.mark.parametrize(
    ("kernel", "limits", "verdict", "words"),
    [
        (kernels.segfaults, AMPLE, Verdict.CRASHED, "was killed by signal SIGSEGV"),
        (kernels.hangs, Limits(seconds=6.0), Verdict.TIMED_OUT, "no answer within 6 s"),
    ],
)
def test_a_kernel_that_ends_its_process_has_a_verdict(tmp_path, kernel, limits, verdict, words):
    ledger, told = tmp_path / "l.sqlite", []
    found = isolated.run(of(kernel, ledger), limits, lambda *where: told.append(where))
    assert found.verdict is verdict
    assert found.verdict.exit_status == 1
    assert found.reasons[0].startswith("kernel, seed 0: ")
    assert words in found.reasons[0]
    assert found.data == "drawn"
    assert told[-1] == (4, 15, "kernel, seed 0")
    assert _runs(ledger) == 4  # what the other arms did is kept


def test_a_run_killed_by_sigkill_goes_on_to_the_same_result(tmp_path, sound):
    ledger = tmp_path / "l.sqlite"
    words = ["converge", "tests.convergence.kernels:gelu", "--task", "tests.convergence.tiny:TASK"]
    words += ["--seeds", "3", "--ledger", str(ledger)]
    parent = subprocess.Popen([sys.executable, "-m", "gelu_verify", *words])
    try:
        _wait_until(lambda: _runs(ledger) >= 3)
        children = psutil.Process(parent.pid).children()
    finally:
        os.kill(parent.pid, signal.SIGKILL)
        parent.wait()
    _wait_until(lambda: not any(child.is_running() for child in children))
    kept = _runs(ledger)
    assert 3 <= kept < 15
    resumed = experiments.run(of(kernels.gelu, ledger), lambda *_: None)
    assert resumed.trained == 15 - kept
    assert facts(resumed) == facts(sound[0])


def _runs(ledger):
    if not ledger.exists():
        return 0
    try:
        with sqlite3.connect(ledger, timeout=30) as database:
            return database.execute("SELECT COUNT(*) FROM shard").fetchone()[0]
    except sqlite3.OperationalError:  # its tables are not made yet
        return 0


def _wait_until(holds, seconds=120.0):
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.01)


@pytest.mark.parametrize(("said", "expected"), [(None, 1), ("2", 2)])
def test_it_trains_on_one_thread_unless_the_user_says_otherwise(
    tmp_path, monkeypatch, said, expected
):
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    if said:
        monkeypatch.setenv("OMP_NUM_THREADS", said)
    experiment = of(kernels.tells_threads, tmp_path / "l.sqlite")
    found = isolated.run(experiment, AMPLE, lambda *_: None)
    assert f"threads: {expected}" in found.reasons[0]
