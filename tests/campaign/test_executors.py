"""Where shards run."""

import os
import signal
import subprocess
import sys

import pytest

from gelu_verify.campaign import executors
from gelu_verify.campaign import run as campaigns
from gelu_verify.errors import UsageError
from tests.campaign.campaigns import PATTERNS, SHARD, job, plan, quiet

_SCRIPT = """
import sys
sys.path[:] = {path!r}
from pathlib import Path
from gelu_verify.campaign import run
from tests.campaign.campaigns import job, plan, quiet
print("script runs")
folder = Path(sys.argv[1])
run.run(job(folder), plan(folder, patterns=1 << 15), quiet)
"""


def test_workers_do_not_run_the_script_when_it_has_no_guard(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(_SCRIPT.format(path=sys.path))
    done = subprocess.run(
        [sys.executable, str(script), str(tmp_path)], capture_output=True, text=True, check=True
    )
    assert done.stdout == "script runs\n"


def test_one_worker_has_the_gpu():
    assert executors.worker_count("cuda:1") == 1
    assert executors.worker_count("cpu") == len(os.sched_getaffinity(0))


@pytest.mark.parametrize("address", ["nowhere", "tcp://127.0.0.1:1", "x://y:1"])
def test_address_is_wrong_usage_when_no_scheduler_answers(address, monkeypatch):
    pytest.importorskip("distributed", reason="the dask extra is not installed")
    monkeypatch.setattr(executors, "_CONNECT_SECONDS", 1)
    with (
        pytest.raises(UsageError, match="expected the address of a running Dask scheduler"),
        executors.cluster(address),
    ):
        pass


def test_census_is_the_same_on_a_cluster_when_a_worker_is_killed(tmp_path):
    distributed = pytest.importorskip("distributed", reason="the dask extra is not installed")
    local = campaigns.run(job(tmp_path, "slow"), plan(tmp_path), quiet)
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None
    ) as cluster:
        victim = next(iter(cluster.workers.values())).pid
        killed = []

        def kill_one(done, total):
            if done >= 2 * SHARD and not killed:
                os.kill(victim, signal.SIGKILL)
                killed.append(done)

        how = plan(
            tmp_path, ledger=tmp_path / "other.sqlite", workers=None,
            scheduler=cluster.scheduler_address,
        )  # fmt: skip
        text = campaigns.run(job(tmp_path, "slow"), how, kill_one)
    assert killed
    assert killed[0] < PATTERNS
    assert text == local
