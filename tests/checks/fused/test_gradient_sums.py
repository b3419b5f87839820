"""Gradient sums: a backward that rounds, cuts or loses what it adds."""

import pytest
import torch
from torch.nn import functional

from gelu_verify.checks.fused import gradient_sums
from gelu_verify.kernels.spec import Declared
from gelu_verify.records import FindingStatus
from tests.cases import failures, messages
from tests.checks.fused import listed_cases
from tests.checks.fused.contract_cases import Fused, by_hand, fused_case, sound


class _SerialBias(Fused):
    """The gradient of the bias is rounded to bf16 after every row."""

    @staticmethod
    def backward(ctx, dy):
        dx, dweight, _ = Fused.backward(ctx, dy)
        total = torch.zeros(dy.shape[-1])
        for row in dy.float():  # f' is 1 in this check
            total = (total + row).bfloat16().float()
        return dx, dweight, total.to(dy.dtype)


class _SplitWeight(Fused):
    """The gradient of the weight is added in splits of 16 rows that are stored in bf16."""

    @staticmethod
    def backward(ctx, dy):
        x = ctx.saved_tensors[0]
        dx, _, dbias = Fused.backward(ctx, dy)
        total = torch.zeros(dy.shape[-1], x.shape[-1])
        for g, part in zip(dy.split(16), x.split(16), strict=True):
            total += (g.float().t() @ part.float()).bfloat16().float()
        return dx, total.to(x.dtype), dbias


class _LastRowsOnly(Fused):
    """The gradient of the bias ends with the last 64 rows."""

    @staticmethod
    def backward(ctx, dy):
        dx, dweight, _ = Fused.backward(ctx, dy)
        return dx, dweight, dy[-64:].float().sum(0).to(dy.dtype)


@pytest.mark.parametrize("name", ["fp32", "bf16", "fp16"])
@pytest.mark.parametrize("kernel", [sound, by_hand])
def test_sums_pass_when_the_kernel_is_sound(kernel, name):
    (found,) = gradient_sums.run(fused_case(kernel, name)).findings
    assert found.status is FindingStatus.PASSED, found.message
    # fp16 does not hold the terms of a sum over rows.
    assert ("dbias" in found.message) == (name != "fp16")


@pytest.mark.parametrize(
    ("kernel", "message"),
    [
        (_SerialBias.apply, "dbias: a sum of 513 keeps 8 bits, fp32 is due"),
        (_SplitWeight.apply, "dweight: a sum of 513 keeps 8 bits"),
        (_LastRowsOnly.apply, "dbias: a sum of 513 keeps not even a few bits"),
    ],
)
def test_fault_is_named_when_a_backward_loses_bits(kernel, message):
    (found,) = failures(gradient_sums.run(fused_case(kernel)))
    assert message in found.message


def test_narrow_sums_pass_when_they_are_declared():
    case = fused_case(_SerialBias.apply, arithmetic=Declared(accumulate="bf16"))
    assert failures(gradient_sums.run(case)) == []


def test_check_is_skipped_when_there_is_no_gradient():
    case = fused_case(lambda x, w, b: sound(x, w, b).detach())
    (found,) = gradient_sums.run(case).findings
    assert found.status is FindingStatus.SKIPPED


@pytest.mark.parametrize("operator", ["geglu", "conv_relu_pool", "attention"])
def test_check_is_skipped_when_no_gradient_is_a_sum_of_dy(operator):
    case = listed_cases.fused_case(lambda *_: None, operator)
    (found,) = gradient_sums.run(case).findings
    assert found.status is FindingStatus.SKIPPED


def test_bias_of_a_layer_norm_is_judged():
    def kernel(x, weight, bias):
        return functional.gelu(functional.layer_norm(x, x.shape[-1:], weight, bias))

    case = listed_cases.fused_case(kernel, "layernorm_gelu", "fp32")
    assert "dbias 2" in messages(gradient_sums.run(case))
