"""Double backward: right where autograd sees all, wrong where a part looks constant to it."""

import pytest
import torch
from torch.autograd.function import once_differentiable

from gelu_verify.checks.fused import double_backward
from gelu_verify.records import FindingStatus
from tests.cases import failures, messages
from tests.checks.fused.contract_cases import Fused, by_hand, fused_case, slope, sound


class _Once(Fused):
    backward = staticmethod(once_differentiable(Fused.backward))


class _OutOfSight(Fused):
    """All of the backward in kernels of its own."""

    @staticmethod
    def backward(ctx, dy):
        with torch.no_grad():
            return Fused.backward(ctx, dy)


class _SlopeIsConstant(torch.autograd.Function):
    """Recomputes in backward, but takes the slope for a constant."""

    @staticmethod
    def forward(ctx, x, weight, bias):
        ctx.save_for_backward(x, weight, bias)
        return sound(x, weight, bias)

    @staticmethod
    def backward(ctx, dy):
        x, weight, bias = ctx.saved_tensors
        g = dy * slope(torch.nn.functional.linear(x, weight, bias)).detach()
        return g @ weight, g.t() @ x, g.sum(0)


@pytest.mark.parametrize("name", ["fp64", "fp32", "bf16", "fp16"])
def test_second_derivatives_pass_when_autograd_sees_all(name):
    (found,) = double_backward.run(fused_case(sound, name)).findings
    assert found.status is FindingStatus.PASSED, found.message


@pytest.mark.parametrize("name", ["fp32", "bf16"])
@pytest.mark.parametrize("kernel", [by_hand, _SlopeIsConstant.apply])
def test_fault_is_named_when_a_term_is_lost(kernel, name):
    found = failures(double_backward.run(fused_case(kernel, name)))
    said = {f.message.partition(": ")[0] for f in found}
    assert said == {f"second derivative for {part}" for part in ("x", "weight", "bias")}
    assert all("of its norm, expected at most" in f.message for f in found)
    assert all("--case m=4,k=4,n=4" in f.reproduce for f in found)


@pytest.mark.parametrize(
    "kernel",
    [_Once.apply, _OutOfSight.apply, lambda x, weight, bias: sound(x, weight, bias).detach()],
)
def test_check_is_skipped_when_no_second_derivative_is_offered(kernel):
    text = messages(double_backward.run(fused_case(kernel)))
    assert text == "skipped: the kernel's gradient cannot be differentiated"
