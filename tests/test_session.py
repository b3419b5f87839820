"""Sessions: many jobs, one list of results."""

import pytest

from gelu_verify import session
from gelu_verify.campaign import executors
from gelu_verify.errors import GeluVerifyError
from gelu_verify.job import plan
from gelu_verify.kernels.listener import Limits
from gelu_verify.records import Results, Status
from tests import faulty_kernels as kernels
from tests.cases import job


def test_results_are_in_order_when_two_kernels_run_in_children():
    jobs = [
        task
        for name in ("torch.nn.functional:relu", "torch.ops.aten.gelu")
        for task in plan(name, format_names=("fp32",), depth="quick")
        if not task.via
    ]
    seen = []
    done = session.run(jobs, Limits(120.0), lambda index, check: seen.append(index))
    assert [k.name for k in done.kernels] == ["torch.nn.functional:relu", "torch.ops.aten.gelu"]
    assert done.kernels[0].status is Status.FAILED
    assert done.environment.instruction_set
    assert seen == [0] * 10 + [1] * 10
    # As text: a mean over no elements is NaN, which equals nothing.
    text = done.model_dump_json()
    assert Results.model_validate_json(text).model_dump_json() == text


def test_every_job_is_told_of_when_run_in_this_process():
    seen = []
    done = session.run_here(
        [job("fp32"), job("fp16", depth="quick")],
        lambda index, check: seen.append((index, check)),
        kernels.textbook,
    )
    assert [k.format for k in done.kernels] == ["fp32", "fp16"]
    assert seen[0] == (0, "loading")
    assert seen[-1] == (1, "dtypes")
    assert done.exit_status == 0


def test_nothing_is_checked_when_there_are_no_jobs():
    assert session.run([], Limits(1.0), lambda *_: None).exit_status == 3


def accuracy_jobs(*targets):
    """Jobs of the accuracy check alone, a kernel each."""
    found = [plan(name, operator="gelu", format_names=("bf16",))[0] for name in targets]
    return [one.model_copy(update={"checks": ("accuracy",)}) for one in found]


def test_results_are_in_order_when_kernels_run_at_a_time():
    names = ("tests.faulty_kernels:correct", "tests.faulty_kernels:guarded")
    done = session.run(accuracy_jobs(*names), Limits(120.0), lambda *_: None, processes=2)
    assert tuple(k.target for k in done.kernels) == names
    assert done.environment.instruction_set


def test_error_of_one_kernel_ends_the_others():
    jobs = accuracy_jobs("tests.faulty_kernels:nothing", "tests.hunt.kernels:hangs")
    with pytest.raises(GeluVerifyError, match="nothing of that name"):
        session.run(jobs, Limits(500.0), lambda *_: None, processes=2)


def test_a_kernel_a_core_is_checked_at_a_time_unless_it_needs_the_machine(monkeypatch):
    monkeypatch.setattr(executors, "worker_count", lambda device: {"cpu": 4}.get(device, 1))
    names = ("tests.faulty_kernels:correct", "tests.faulty_kernels:guarded", "torch-erf")
    jobs = accuracy_jobs(*names)
    assert session.at_a_time(jobs) == 3
    assert session.at_a_time(jobs[:1]) == 1
    assert session.at_a_time(jobs, 2) == 2
    assert session.at_a_time(jobs, 9) == 3
    on_gpu = jobs[0].model_copy(update={"device": "cuda"})
    assert session.at_a_time([on_gpu, jobs[1]]) == 1
    timed = jobs[0].model_copy(update={"speed": True})
    swept = plan("torch-erf", format_names=("fp32",), depth="exhaustive")[0]
    assert session.at_a_time([timed, jobs[1]], 2) == session.at_a_time([swept, jobs[1]], 2) == 1


def test_processes_share_memory_and_cores(monkeypatch):
    monkeypatch.setattr("os.sched_getaffinity", lambda pid: set(range(8)))
    whole = Limits(5.0, memory=12 << 30)
    assert session.shared(whole, 1) == whole
    assert session.shared(whole, 3) == Limits(5.0, memory=4 << 30, threads=2)
    assert session.shared(whole, 16).threads == 1
