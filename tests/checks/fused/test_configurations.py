"""Configurations: kernels tuned by `triton.autotune`, one of whose configurations is wrong."""

import pytest
import torch

from gelu_verify.checks.fused import configurations
from gelu_verify.kernels import autotuning
from gelu_verify.records import FindingStatus
from tests.cases import failures, messages
from tests.checks.fused import tuned_kernels
from tests.checks.fused.contract_cases import fused_case, sound

pytestmark = pytest.mark.skipif(
    torch.cuda.is_available(), reason="the tuned kernels of these tests run in the interpreter"
)


def _run(kernel, **options):
    return configurations.run(fused_case(kernel, "fp32", **options))


def test_check_is_skipped_when_nothing_is_tuned():
    (found,) = _run(sound).findings
    assert found.status is FindingStatus.SKIPPED
    assert found.message == "no kernel that triton.autotune tunes ran"


def test_passes_with_the_same_bits_when_configurations_only_share_out_rows():
    (found,) = _run(tuned_kernels.rows_alone, cases=("m=33,k=9,n=33",)).findings
    assert found.status is FindingStatus.PASSED
    assert found.message == (
        "all 2 configurations of tile_kernel within their bounds, bit for bit the same"
    )


def test_other_bits_are_noted_when_the_order_of_a_sum_depends_on_the_configuration():
    passed, noted = _run(tuned_kernels.steps).findings
    assert (passed.status, noted.status) == (FindingStatus.PASSED, FindingStatus.NOTED)
    assert passed.message == "all 2 configurations of tile_kernel within their bounds"
    assert noted.message.startswith("tile_kernel in BLOCK_M: 64, BLOCK_K: 64, TAIL: True")
    assert "gives other bits: the result of m=33,k=33,n=33 in " in noted.message


@pytest.mark.parametrize("kernel", [tuned_kernels.loses_the_tail, tuned_kernels.made_when_called])
def test_fails_when_one_configuration_leaves_the_bound(kernel):
    (failed,) = failures(_run(kernel))
    assert failed.message.startswith("tile_kernel in BLOCK_M: 64, BLOCK_K: 32, TAIL: False")
    assert "break their bound" in failed.message
    assert failed.input == "case m=33,k=33,n=33"
    assert "--case m=33,k=33,n=33" in failed.reproduce


def test_configuration_is_not_blamed_for_calls_that_pruning_keeps_from_it():
    outcome = _run(tuned_kernels.pruned)
    assert not failures(outcome), messages(outcome)
    assert "all 2 configurations" in messages(outcome)


def test_wrong_configuration_holds_where_there_is_no_tail():
    outcome = _run(tuned_kernels.loses_the_tail, cases=("m=5,k=64,n=7",))
    assert not failures(outcome), messages(outcome)


def test_crash_in_one_configuration_is_a_failure():
    def crashes(x, weight, bias):
        y = tuned_kernels.loses_the_tail(x, weight, bias)
        if (y - sound(x, weight, bias)).abs().max() > 1e-3:
            raise RuntimeError("illegal memory access")
        return y

    (failed,) = failures(_run(crashes))
    assert failed.message.endswith("RuntimeError: illegal memory access")


def test_autotuner_is_as_before_when_forcing_ends():
    tuner = tuned_kernels._TAILS
    configs = list(tuner.configs)
    with autotuning.forcing() as seen:
        tuned_kernels.loses_the_tail(*(torch.ones(size) for size in ((5, 33), (7, 33), (7,))))
    assert [tuned.kernel for tuned in seen.met] == ["tile_kernel"]
    assert tuner.configs == configs
    assert not tuner.cache


def test_first_configuration_runs_when_the_interpreter_has_nothing_to_time():
    case = fused_case(tuned_kernels.loses_the_tail, "fp32")
    inputs = (torch.ones(5, 33), torch.ones(7, 33), torch.zeros(7))
    assert torch.equal(case.call(inputs), torch.full((5, 7), 33.0))
