"""A check of every input: the quick check, the campaign, the checks with its census."""

import json
import re

import psutil
import pytest
import torch

import gelu_verify
from gelu_verify import pipeline, session
from gelu_verify.campaign import checked
from gelu_verify.campaign import run as campaigns
from gelu_verify.campaign.run import CampaignStopped, Plan
from gelu_verify.checks import accuracy, invariants, saturation
from gelu_verify.kernels.listener import Limits
from gelu_verify.ledger import Ledger, LedgerRefused
from gelu_verify.records import FindingStatus, Status
from tests import faulty_kernels as kernels
from tests.campaign.campaigns import FIRST, PATTERNS, SHARD, job, plan, quiet
from tests.cases import backward, case, failures
from tests.cases import job as task


def census(kernel, first=FIRST, patterns=PATTERNS, **options):
    how = Plan(first=first, patterns=patterns, shard=SHARD)
    return campaigns.run_here(task("fp32", depth="exhaustive", **options), kernel, how, quiet)


def test_only_fp32_is_swept():
    assert checked.is_swept(task("fp32", depth="exhaustive"))
    assert not checked.is_swept(task("fp32", depth="standard"))
    assert not checked.is_swept(task("bf16", depth="exhaustive"))
    assert not checked.is_swept(task("fp32", depth="exhaustive", replay=((0,),)))


def test_figures_are_those_of_the_census():
    outcome = accuracy.run(case(kernels.guarded, "fp32", census=census(kernels.guarded)))
    record = outcome.fields["accuracy"]
    assert (record.sweep, record.inputs, record.count) == ("exhaustive", PATTERNS, PATTERNS)
    assert not record.exhaustive  # a part of fp32 only
    assert record.inputs_digest == "all patterns"
    assert len(record.binades) == 2 * 255
    (largest,) = (b for b in record.binades if b.max_error_ulp)
    assert (largest.sign, largest.exponent) == ("-", 2)
    assert largest.max_error_ulp == outcome.fields["tightest"].max_error_ulp > 1e6
    assert record.reversals.broken == 0
    assert outcome.findings[0].message == f"{PATTERNS:,} inputs hold cancelling"
    (use,) = record.allowances
    assert (use.allowance, use.region) == ("guard", "deep_tail")


def test_failure_names_the_worst_input_of_all():
    kernel = kernels.sign_flips_at_one
    found = census(kernel, first=0xBF7F0000, patterns=1 << 17)
    outcome = accuracy.run(case(kernel, "fp32", census=found))
    (failed,) = failures(outcome)
    assert failed.message.startswith("1 of 131,072 inputs break cancelling; worst")
    assert "(opposite_sign)" in failed.message
    assert failed.input == "x = -1.0 (0xBF800000)"
    assert outcome.fields["tightest"].contract is None


def test_backward_is_judged_at_other_dy_as_well():
    options = {"operator": "gelu_backward"}
    found = census(kernels.correct_backward, **options)

    def wrong_at_other_dy(dy, x):
        return kernels.correct_backward(dy, x) * (dy == 1.0)

    outcome = accuracy.run(backward(wrong_at_other_dy, "fp32", census=found))
    assert outcome.fields["accuracy"].reversals is None
    (failed,) = failures(outcome)
    assert failed.message.startswith("other dy: ")


def test_thresholds_are_exact():
    record = saturation.run(case(kernels.guarded, "fp32", census=census(kernels.guarded))).fields[
        "saturation"
    ]
    # x < -6 gives 0: the next below -6 is the first.
    assert record.zero_from == -6.000000476837158
    assert 5.9e-9 < record.zero_cost_absolute < 5.92e-9
    assert record.identity_from == 1.401298464324817e-45  # no positive x was measured


def test_steps_back_are_a_finding_when_larger_than_permitted():
    def steps_back(x):
        y = kernels.correct(x)
        bits = x.view(torch.int32)
        return y * (1 + (bits % 16 == 3) * 40 * 2.0**-23)

    def as_fp32(x):
        return steps_back(x).to(x.dtype)

    found = census(as_fp32, first=0x3F800000, patterns=1 << 12)
    outcome = invariants.run(case(kernels.correct, "fp32", census=found))
    (failed,) = failures(outcome)
    assert failed.message.startswith("not monotone at 256 inputs, of 256 that step back")
    assert failed.reproduce.count("--input") == 2


def test_a_session_measures_every_input_it_is_told_to(tmp_path):
    checks, told = [], []
    done = session.run(
        [job(tmp_path)],
        Limits(120.0),
        lambda index, check: checks.append((index, check)),
        plan(tmp_path),
        lambda *at: told.append(at),
    )
    (result,) = done.kernels
    assert result.accuracy.inputs == PATTERNS
    assert result.accuracy.sweep == "exhaustive"
    assert checks.count((0, "accuracy")) == 2  # quick, and with the census
    assert told[-1] == (0, PATTERNS, PATTERNS)


def test_backward_has_a_ledger_of_its_own(tmp_path):
    how = plan(tmp_path)
    forward = job(tmp_path)
    back = forward.model_copy(update={"operator": "gelu_backward", "via": "autograd"})
    assert session._ledger_of(forward, how) == tmp_path / "ledger.sqlite"
    assert session._ledger_of(back, how) == tmp_path / "ledger-autograd.sqlite"


@pytest.mark.parametrize(
    ("function", "memory", "message"),
    [
        ("dies", 16 << 30, "a worker died 2 times"),
        ("hoards", 3 << 29, "exhaustive sweep: memory: a worker grew to 1.[5-9] GiB, limit 1.5"),
    ],
)
def test_what_was_learnt_is_kept_when_the_campaign_stops(tmp_path, function, memory, message):
    how = plan(tmp_path, patterns=1 << 21, shard=1 << 19)
    done = session.run([job(tmp_path, function)], Limits(120.0, memory), lambda *_: None, how)
    (result,) = done.kernels
    assert result.status is Status.CRASHED
    assert result.accuracy.sweep == "quick"
    last = result.findings[-1]
    assert (last.check, last.status) == ("accuracy", FindingStatus.FAILED)
    assert re.search(message, last.message)
    assert last.reproduce.endswith("--sweep exhaustive")
    assert done.exit_status == 1
    left = [" ".join(child.cmdline()) for child in psutil.Process().children(recursive=True)]
    assert not any("spawn_main" in words for words in left)


def test_workers_share_the_memory_of_a_child():
    share = {
        workers: session._own(task("fp32"), Plan(workers=workers), Limits(60.0, 16 << 30)).memory
        for workers in (1, 2, 64)
    }
    assert share == {1: 16 << 30, 2: 8 << 30, 64: 2 << 30}
    assert session._own(task("fp32"), Plan(workers=9), Limits(60.0, 1 << 30)).memory == 1 << 30


def _foreign(path):
    Ledger(path, {"kernel": "another"}).close()


def _folder(path):
    path.mkdir()


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (_foreign, "got contract = None"),
        (_folder, "got a file that SQLite cannot use"),
        (lambda path: path.write_text("notes" * 999), "got a file that SQLite cannot use"),
    ],
)
@pytest.mark.parametrize("stem", ["ledger", "ledger-autograd"])
def test_nothing_runs_when_a_ledger_is_refused(tmp_path, spoil, message, stem):
    spoil(tmp_path / f"{stem}.sqlite")
    forward = job(tmp_path)
    back = forward.model_copy(update={"operator": "gelu_backward", "via": "autograd"})
    ran = []
    jobs = [task("bf16"), forward, back]
    with pytest.raises(LedgerRefused, match=message):
        session.run(jobs, Limits(120.0), lambda *at: ran.append(at), plan(tmp_path))
    assert ran == []
    assert not (tmp_path / "ledger.sqlite").exists() or stem == "ledger"


def test_a_hang_is_timed_out():
    def stop():
        raise CampaignStopped("exhaustive sweep: hung", timed_out=True)

    def run_checks(job):
        return pipeline.check(job, lambda *_: None, kernels.correct)

    result = checked.check(task("fp32", depth="exhaustive"), run_checks, stop)
    assert result.status is Status.TIMED_OUT
    assert result.saturation is not None


def test_a_kernel_without_a_gradient_is_not_swept():
    def never():
        raise AssertionError

    backward_job = task("fp32", depth="exhaustive", operator="gelu_backward", via="autograd")
    for kernel, status in ((kernels.correct, None), (kernels.other_dtype, Status.FAILED)):

        def run_checks(job, kernel=kernel):
            return pipeline.check(job, lambda *_: None, kernel)

        job_of = backward_job if status is None else task("fp32", depth="exhaustive")
        result = checked.check(job_of, run_checks, never)
        assert (result and result.status) is status


def test_python_sweeps_a_function_in_this_process(monkeypatch):
    monkeypatch.setattr(session, "_PLAN", Plan(first=FIRST, patterns=PATTERNS))
    monkeypatch.setattr(session.run_here, "__defaults__", (None, session._PLAN, session._ignore))
    done = gelu_verify.check(kernels.correct, format="fp32", sweep="exhaustive")
    (result,) = done.raise_if_failed().kernels
    assert result.accuracy.inputs == PATTERNS
    assert json.loads(result.model_dump_json())["accuracy"]["sweep"] == "exhaustive"
