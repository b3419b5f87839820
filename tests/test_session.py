"""Sessions: many jobs, one list of results."""

from gelu_verify import session
from gelu_verify.job import plan
from gelu_verify.kernels.isolation import Limits
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
