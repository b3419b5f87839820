"""The list of checks of fused kernels, run by the pipeline."""

from gelu_verify import pipeline
from gelu_verify.checks import fused
from gelu_verify.records import FindingStatus, KernelResult, Status
from tests.checks.fused.contract_cases import fused_case, sound


def _run(**options):
    seen = []
    task = fused_case(sound, **options).job
    result = pipeline.check(task, lambda check, partial: seen.append(check), sound)
    return result, seen


def test_every_check_runs_in_order_when_a_kernel_is_sound():
    result, seen = _run()
    assert seen == ["loading", *fused.CHECKS]
    assert list(fused.CHECKS)[:3] == ["memory", "aliasing", "determinism"]
    assert result.status is Status.PASSED, result.failures
    skipped = [f.check for f in result.findings if f.status is FindingStatus.SKIPPED]
    assert skipped == ["configurations", "large", "opcheck"]
    assert [row.batch for row in result.batches] == [1, 2, 17, 33, 128, 257]
    assert KernelResult.model_validate_json(result.model_dump_json()) == result


def test_checks_of_single_cases_run_when_one_is_replayed():
    result, seen = _run(cases=("m=3,k=5,n=7",))
    assert seen == ["loading", *fused.REPLAYED]
    assert set(fused.REPLAYED) <= set(fused.CHECKS)
    assert result.status is Status.PASSED, result.failures
    assert result.bound.cases == 1
