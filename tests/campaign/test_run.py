"""Campaigns: the same census whatever happened on the way."""

import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest

from gelu_verify.campaign import run as campaigns
from gelu_verify.campaign import shard
from gelu_verify.campaign.run import CampaignInterrupted, CampaignStopped, Plan
from gelu_verify.exhaustive import transport
from gelu_verify.ledger import LedgerRefused
from tests.campaign.campaigns import FIRST, PATTERNS, SHARD, file, job, plan, quiet


def in_this_process(folder, function="sound", **more):
    """The census by a loop in this process."""
    task = job(folder, function)
    return campaigns.run_here(task, shard.load(task), plan(folder, **more), quiet)


def test_shards_cover_every_pattern_when_the_device_chooses_their_size():
    for device, count in (("cpu", 128), ("cuda", 2), ("cuda:1", 2)):
        shards = Plan().shards(device)
        assert len(shards) == count
        assert sum(stop - start for start, stop in shards) == 2**32
        assert shards[0][0] == 0
        assert all(a[1] == b[0] for a, b in pairwise(shards))


def test_census_is_that_of_one_process_when_run_by_workers(tmp_path):
    told = []
    text = campaigns.run(job(tmp_path), plan(tmp_path), lambda *at: told.append(at))
    assert text == in_this_process(tmp_path)
    assert transport.loads(text).patterns == PATTERNS
    assert told[0] == (0, PATTERNS)
    assert told[-1] == (PATTERNS, PATTERNS)
    # All is in the ledger: nothing is run again, and another kernel is refused.
    told.clear()
    assert campaigns.run(job(tmp_path), plan(tmp_path), lambda *at: told.append(at)) == text
    assert told == [(PATTERNS, PATTERNS)]
    for other in (job(tmp_path, "slow"), job(tmp_path, contract="faithful")):
        with pytest.raises(LedgerRefused):
            campaigns.run(other, plan(tmp_path), quiet)


def test_key_changes_when_the_kernel_is_edited(tmp_path):
    task = job(tmp_path)
    before = campaigns.campaign_key(task, plan(tmp_path))
    source = file(tmp_path)
    source.write_text(source.read_text() + "# edited\n")
    after = campaigns.campaign_key(task, plan(tmp_path))
    assert {name for name in before if before[name] != after[name]} == {"kernel source"}


_CHILD = """
import sys
sys.path[:] = {path!r}
from pathlib import Path
from gelu_verify.campaign import run
from tests.campaign.campaigns import job, plan
folder = Path(sys.argv[1])
run.run(job(folder, "slow"), plan(folder), lambda done, total: print(done, flush=True))
"""


def test_census_is_the_same_when_a_run_is_killed_and_goes_on(tmp_path):
    child = subprocess.Popen(
        [sys.executable, "-c", _CHILD.format(path=sys.path), str(tmp_path)],
        stdout=subprocess.PIPE,
        text=True,
    )
    assert child.stdout is not None
    while int(child.stdout.readline()) < 2 * SHARD:
        pass
    children = _children(child.pid)
    os.kill(child.pid, signal.SIGKILL)
    child.wait()
    child.stdout.close()
    told = []
    text = campaigns.run(job(tmp_path, "slow"), plan(tmp_path), lambda *at: told.append(at[0]))
    assert 2 * SHARD <= told[0] < PATTERNS
    assert text == in_this_process(tmp_path)
    deadline = time.monotonic() + 10
    while any(Path(f"/proc/{pid}").exists() for pid in children) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert not any(Path(f"/proc/{pid}").exists() for pid in children)


def _children(pid):
    import psutil

    return [child.pid for child in psutil.Process(pid).children(recursive=True)]


def test_census_is_the_same_when_a_worker_dies_once(tmp_path):
    first = 0xC0CE0000  # -6.5 is 0xC0D00000
    text = campaigns.run(job(tmp_path, "dies_once"), plan(tmp_path, first=first), quiet)
    assert (tmp_path / "k.py.died").exists()
    assert text == in_this_process(tmp_path, first=first)


@pytest.mark.parametrize(
    ("function", "message", "timed_out"),
    [
        ("raises", r"the kernel failed at patterns 0xC0.*: RuntimeError: no room at -6\.5", False),
        ("other_dtype", "the kernel failed at .*got torch.float64", False),
        ("dies", "a worker died 2 times at patterns 0xC0CF0000 to 0xC0D6FFFF", False),
        ("hangs", "a worker hung 2 times at patterns 0xC0", True),
    ],
)
def test_campaign_stops_when_the_kernel_does(tmp_path, function, message, timed_out):
    # One shard of four breaks: -6.5 is 0xC0D00000.
    seconds = 5.0 if timed_out else 120.0
    how = plan(tmp_path, patterns=1 << 21, shard=1 << 19, seconds=seconds)
    with pytest.raises(CampaignStopped, match=message) as caught:
        campaigns.run(job(tmp_path, function), how, quiet)
    assert caught.value.timed_out is timed_out


def test_failure_is_the_same_when_the_kernel_raises_in_this_process(tmp_path):
    task = job(tmp_path, "raises")
    with pytest.raises(CampaignStopped, match="RuntimeError: no room"):
        campaigns.run_here(task, shard.load(task), plan(tmp_path, patterns=1 << 21), quiet)


def test_message_says_how_to_go_on_when_interrupted(tmp_path):
    def interrupt(done, total):
        if done:
            raise KeyboardInterrupt

    with pytest.raises(CampaignInterrupted, match="Run the same command again to go on") as caught:
        campaigns.run(job(tmp_path), plan(tmp_path), interrupt)
    assert caught.value.exit_status == 130
    assert f"of {PATTERNS // SHARD} shards done, kept in {tmp_path}" in str(caught.value)


def test_kernel_cannot_change_its_input(tmp_path):
    def overwrites(x):
        y = x * 0.5
        x.zero_()
        return y

    task = job(tmp_path)
    kept = campaigns.run_here(task, lambda x: x * 0.5, plan(tmp_path), quiet)
    assert campaigns.run_here(task, overwrites, plan(tmp_path), quiet) == kept
    assert json.loads(kept)["summary"]["inputs"] == PATTERNS


def test_plan_starts_elsewhere_when_told():
    assert replace(Plan(), first=FIRST, patterns=10, shard=8).shards("cpu") == [
        (FIRST, FIRST + 8),
        (FIRST + 8, FIRST + 10),
    ]
