"""The tests in use today, as they are: what they let pass and what they do not."""

import pytest
import torch

from gelu_verify.job import plan
from gelu_verify.kernels.spec import KernelSpec
from gelu_verify.operators import names
from gelu_verify.selftest import eager, usual


def job(operator="gelu", name="fp32"):
    spec = KernelSpec(name="k", target="k.py:f", operator=operator)
    return plan(spec, format_names=(name,), depth="quick")[0]


def passing(kernel, operator="gelu", name="fp32"):
    found = usual.verdicts(job(operator, name), kernel)
    assert [v.test for v in found] == list(usual.TESTS)
    return {v.test for v in found if v.passes}


@pytest.mark.parametrize("operator", names())
def test_every_test_passes_when_the_kernel_is_eager_itself(operator):
    assert passing(eager.function(operator, "erf"), operator) == set(usual.TESTS)


def test_only_loose_ones_pass_when_results_are_off_by_half_a_percent():
    assert passing(lambda x: torch.nn.functional.gelu(x) * 1.005) == {
        "1e-2", "cosine", "PCC", "SQNR",
    }  # fmt: skip


def test_scale_and_shift_are_not_seen_by_a_correlation():
    """As tenstorrent/tt-metal#22994 has it."""
    assert passing(lambda x: 2 * torch.nn.functional.gelu(x)) == {"cosine", "PCC"}
    assert "PCC" in passing(lambda x: torch.nn.functional.gelu(x) + 1)


def test_none_passes_when_a_result_is_nan():
    def kernel(x):
        y = torch.nn.functional.gelu(x)
        y[0, 0] = torch.nan
        return y

    assert not passing(kernel)


def test_failure_is_said_when_the_kernel_raises():
    def kernel(x):
        raise ValueError("no")

    found = usual.verdicts(job(), kernel)
    assert not any(v.passes for v in found)
    assert {v.failure for v in found} == {"ValueError: no"}


def test_gradient_is_compared_when_a_fused_kernel_has_one():
    class Wrong(torch.autograd.Function):
        @staticmethod
        def forward(ctx, gate, up):
            ctx.save_for_backward(gate, up)
            return torch.nn.functional.gelu(gate) * up

        @staticmethod
        def backward(ctx, dy):
            return dy, dy

    assert not passing(Wrong.apply, "geglu")
