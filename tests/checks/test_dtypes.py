"""Dtypes: integers and operands of two dtypes are refused, or the result is right."""

import pytest
import torch

from gelu_verify.checks import dtypes
from tests import faulty_kernels as kernels
from tests.cases import backward, case, failures, messages


def test_refusal_passes():
    assert messages(dtypes.run(case(kernels.correct))) == "passed: refused: int32"


def test_right_result_passes_whatever_its_dtype():
    def kernel(x):
        return kernels.correct(x.double())

    assert messages(dtypes.run(case(kernel))) == "passed: right: int32"
    found = messages(dtypes.run(backward(kernels.correct_backward)))
    assert found == "passed: refused: int32; right: dy in fp32, x in fp32"


def truncates(x):
    return kernels.correct(x.double()).to(x.dtype)


def reads_dy_bits(dy, x):
    if dy.dtype != x.dtype:
        dy = dy.view(x.dtype)[: x.numel()]
    return kernels.correct_backward(dy, x)


def reads_up_bits(gate, up):
    return kernels.geglu_once(gate, up if up.dtype == gate.dtype else up.view(gate.dtype)[::2])


def drops_an_element(dy, x):
    y = kernels.correct_backward(dy, x)
    return y if dy.dtype == x.dtype else y[1:]


@pytest.mark.parametrize(
    ("kernel", "operator", "message"),
    [
        (truncates, "gelu", "int32: x = -2: got 0 (torch.int32) for -0.0455; expected that, or"),
        (reads_dy_bits, "gelu_backward", "dy in fp32: dy = "),
        (reads_up_bits, "geglu", "up in fp32: gate = "),
        (
            drops_an_element,
            "gelu_backward",
            "dy in fp32: got torch.Size([12]), expected one number",
        ),
        (lambda x: None, "gelu", "int32: got NoneType, expected one number each"),
    ],
)
def test_fault_is_named_when_an_operand_is_misread(kernel, operator, message):
    found = failures(dtypes.run(case(kernel, operator=operator)))
    assert any(f.message.startswith(message) for f in found), found
    assert all(f.reproduce for f in found)


def test_nan_does_not_pass():
    def kernel(x):
        y = kernels.correct(x.double())
        return torch.full_like(y, torch.nan)

    assert failures(dtypes.run(case(kernel)))


def test_autograd_is_not_asked():
    sound = kernels.differentiable(kernels.correct_backward)
    assert not dtypes.run(backward(sound, via="autograd")).findings
