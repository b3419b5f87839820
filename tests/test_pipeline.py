"""The pipeline: all checks on one kernel, in order, and the verdict."""

import os

import pytest
import torch

from gelu_verify import checks, pipeline
from gelu_verify.errors import UsageError
from gelu_verify.kernels.spec import KernelSpec, KnownIssue
from gelu_verify.records import FindingStatus, KernelResult, Status
from tests import faulty_kernels as kernels
from tests.cases import job


def _check(function, name="fp32", **options):
    seen = []
    task = job(name, **options)
    done = pipeline.check(task, lambda check, partial: seen.append((check, partial)), function)
    return done, seen


def test_every_check_runs_in_order_when_a_kernel_is_sound():
    result, seen = _check(kernels.correct)
    assert result.status is Status.PASSED
    assert [check for check, _ in seen] == ["loading", *checks.CHECKS]
    assert list(checks.CHECKS) == [
        "memory", "conduct", "accuracy", "formula", "special_values", "saturation", "invariants",
        "routes", "dtypes",
    ]  # fmt: skip
    assert KernelResult.model_validate_json(result.model_dump_json()) == result
    assert not result.failures
    assert 0 < result.kernel_seconds < result.seconds


def test_what_is_known_is_told_when_each_check_starts():
    _, seen = _check(kernels.correct)
    known = dict(seen)
    assert known["accuracy"].accuracy is None
    assert known["formula"].accuracy.count > 0
    assert known["loading"].status is Status.CRASHED  # until proven otherwise


@pytest.mark.parametrize(
    ("function", "status", "message"),
    [
        (kernels.other_dtype, Status.FAILED, "kernel result: got torch.float64"),
        (kernels.other_device, Status.FAILED, "kernel result: got a tensor on meta"),
        (lambda x: None + 1, Status.CRASHED, "TypeError: unsupported operand"),
        (lambda x: x.nothing(), Status.CRASHED, "AttributeError"),
    ],
)
def test_verdict_is_typed_when_a_kernel_gives_no_result(function, status, message):
    result, _ = _check(function)
    assert result.status is status
    assert result.findings[-1].message.startswith(message)
    assert result.findings[-1].reproduce


def test_kernel_is_unavailable_when_it_does_not_take_the_format():
    def kernel(x):
        if x.dtype != torch.bfloat16:
            raise TypeError(f"expected bfloat16, got {x.dtype}")
        return kernels.correct(x)

    result, _ = _check(kernel)
    assert result.status is Status.UNAVAILABLE
    (finding,) = result.findings
    assert finding.status is FindingStatus.SKIPPED
    assert finding.message.startswith("the kernel does not take fp32: TypeError: expected bfloat16")


def test_there_is_no_result_when_a_kernel_has_no_gradient():
    assert _check(lambda x: x.detach(), operator="gelu_backward", via="autograd")[0] is None


def test_device_is_unavailable_when_the_machine_or_the_kernel_lacks_it():
    spec = KernelSpec(name="k", target="m:k", devices=("cuda",))
    result, _ = _check(kernels.correct, spec=spec)
    assert (result.status, result.findings[0].message) == (
        Status.UNAVAILABLE,
        "device: got cpu, kernel k declares cuda.",
    )
    if not torch.cuda.is_available():
        result, _ = _check(kernels.correct, device="cuda")
        assert "expected a machine with a CUDA device. Use --device cpu." in str(result.findings)


def test_signature_is_a_usage_error_when_a_function_is_at_hand():
    with pytest.raises(UsageError, match="got signature"):
        _check(lambda dy, x: x)


def _declared(check):
    issue = KnownIssue(check=check, formats=("fp32",), link="https://example.org/1", summary="s")
    return KernelSpec(name="k", target="m:k", known_issues=(issue,))


def test_status_is_known_issue_when_the_declared_fault_shows():
    result, _ = _check(kernels.wrong_if_scalar, spec=_declared("routes"), depth="standard")
    shown = [(f.check, f.status) for f in result.findings if f.status is not FindingStatus.PASSED]
    assert ("routes", FindingStatus.KNOWN_ISSUE) in shown
    # The special values take the 0-d route as well: that is not excused.
    assert ("special_values", FindingStatus.FAILED) in shown
    assert result.status is Status.FAILED


def test_only_the_checks_of_single_inputs_run_when_replayed():
    result, seen = _check(kernels.correct, replay=((0x3F800000,),))
    assert [check for check, _ in seen] == ["loading", *checks.REPLAYED]
    assert result.status is Status.PASSED
    assert result.accuracy.worst.inputs == {"x": "1.0"}


@pytest.mark.parametrize("pattern", [0x7F800000, 0x7FC00000])
def test_special_value_is_judged_alone_when_replayed(pattern):
    result, _ = _check(kernels.correct, replay=((pattern,),))
    assert result.status is Status.PASSED
    assert result.accuracy is None


def test_status_is_known_issue_when_all_that_fails_is_declared():
    issues = _declared("routes").known_issues + _declared("special_values").known_issues
    spec = KernelSpec(name="k", target="m:k", known_issues=issues)
    result, _ = _check(kernels.wrong_if_scalar, spec=spec, depth="standard")
    assert result.status is Status.KNOWN_ISSUE


def test_result_fails_when_a_declared_fault_has_gone():
    result, _ = _check(kernels.correct, spec=_declared("routes"), depth="standard")
    assert result.status is Status.FAILED
    assert result.failures[0].message.endswith("no longer shows. Remove its declaration.")


def _launching(x):
    from gelu_verify.kernels import canary_kernels

    canary_kernels.copy(torch.ones(4))
    return kernels.correct(x)


@pytest.mark.skipif(
    os.environ.get("TRITON_INTERPRET") != "1", reason="kernels are compiled on this machine"
)
@pytest.mark.parametrize("right", [True, False])
def test_figures_count_only_when_the_interpreter_can_be_believed(right, monkeypatch):
    from gelu_verify.kernels import canary

    monkeypatch.setattr(canary, "results", lambda: dict.fromkeys(canary.REQUIRED, right))
    result, _ = _check(_launching, replay=((0x3F800000,),))
    assert result.simulated
    (found,) = [f for f in result.findings if f.check == "simulator"]
    if right:
        assert (result.status, found.status) == (Status.PASSED, FindingStatus.NOTED)
    else:
        assert (result.status, found.status) == (Status.FAILED, FindingStatus.FAILED)
        assert found.message.startswith("Triton's interpreter gets fp32_copy, fp32_arithmetic")
