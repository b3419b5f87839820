"""Aliasing: kernels that give right values in memory that is not theirs alone."""

import pytest
import torch

from gelu_verify.checks.fused import aliasing
from gelu_verify.records import FindingStatus
from tests.cases import failures
from tests.checks.fused.contract_cases import Fused, by_hand, fused_case, slope, sound


class OneBuffer:
    """Returns views of one buffer, as a kernel with a static workspace does."""

    def __init__(self):
        self.buffer = torch.empty(0, dtype=torch.bfloat16)

    def __call__(self, x, weight, bias):
        y = sound(x, weight, bias).detach()
        if self.buffer.numel() < y.numel():
            self.buffer = torch.empty(y.numel(), dtype=y.dtype)
        return self.buffer[: y.numel()].view(y.shape).copy_(y)


class _KeepsGradient(Fused):
    kept = None

    @staticmethod
    def backward(ctx, dy):
        dx, dweight, dbias = Fused.backward(ctx, dy)
        kept = _KeepsGradient.kept
        if kept is None or kept.shape != dx.shape:
            _KeepsGradient.kept = torch.empty_like(dx)
        return _KeepsGradient.kept.copy_(dx), dweight, dbias


class _SharedSums(Fused):
    """What backward needs lies in one buffer a shape."""

    kept = {}  # noqa: RUF012

    @staticmethod
    def forward(ctx, x, weight, bias):
        y = Fused.forward(ctx, x, weight, bias)
        x, weight, z = ctx.to_save
        ctx.save_for_backward(x, weight)
        ctx.z = _SharedSums.kept.setdefault(z.shape, torch.empty_like(z)).copy_(z)
        return y

    @staticmethod
    def backward(ctx, dy):
        x, weight = ctx.saved_tensors
        g = dy.float() * slope(ctx.z)
        dx, dweight = g @ weight.float(), g.t() @ x.float()
        return dx.to(x.dtype), dweight.to(x.dtype), g.sum(0).to(x.dtype)


def in_x(x, weight, bias):
    """Writes into its input: square problems hold the result."""
    return x.detach().copy_(sound(x, weight, bias).detach())


@pytest.mark.parametrize("kernel", [sound, by_hand])
def test_aliasing_passes_when_the_kernel_is_sound(kernel):
    (found,) = aliasing.run(fused_case(kernel)).findings
    assert found.status is FindingStatus.PASSED


@pytest.mark.parametrize(
    ("kernel", "message"),
    [
        (OneBuffer(), "two calls return the result in the same storage"),
        (OneBuffer(), "a later call changed the result of an earlier one in 1 of 1 elements"),
        (_KeepsGradient.apply, "two calls return dx in the same storage"),
        (_SharedSums.apply, "a call before backward changes dx in 1 of 1 elements"),
        (in_x, "the result shares storage with argument x"),
    ],
)
def test_fault_is_named_when_memory_is_shared(kernel, message):
    found = failures(aliasing.run(fused_case(kernel)))
    assert any(message in f.message for f in found), [f.message for f in found]
    assert all("--case m=" in f.reproduce for f in found)
