"""A kernel ready to be called."""

import pytest
import torch

from gelu_verify import formats, operators
from gelu_verify.kernels import activity
from gelu_verify.kernels.subject import (
    KernelFailure,
    Subject,
    declines_format,
    differentiable,
    is_refusal,
    through_autograd,
)
from tests import faulty_kernels as kernels


def _subject(function):
    cpu = torch.device("cpu")
    return Subject("k", "erf", formats.get("fp32"), cpu, function, operators.get("gelu"))


def _failure(error):
    def kernel(x):
        raise error

    with pytest.raises(KernelFailure) as caught:
        _subject(kernel).call(torch.ones(2))
    return caught.value


@pytest.mark.parametrize(
    ("error", "refusal", "declined"),
    [
        (RuntimeError("\"GeluKernelImpl\" not implemented for 'Half'"), True, True),
        (NotImplementedError(), True, True),
        (TypeError("expected float32 tensor, got torch.float16"), True, True),
        (ValueError("unsupported dtype"), True, True),
        (AssertionError("only fp16 and bf16"), True, True),
        (AssertionError(), True, False),
        (RuntimeError("x must be contiguous"), True, False),
        (ValueError("x must be contiguous"), True, False),
        (TypeError("unsupported operand type(s) for +: 'NoneType' and 'int'"), True, False),
        (RuntimeError("CUDA error: an illegal memory access was encountered"), False, False),
        (IndexError("out of range"), False, False),
        (ZeroDivisionError(), False, False),
        (SystemExit(0), False, False),
    ],
)
def test_refusal_is_told_from_fault_when_a_kernel_raises(error, refusal, declined):
    failure = _failure(error)
    assert failure.__cause__ is error
    assert (is_refusal(failure), declines_format(failure)) == (refusal, declined)


def test_message_is_one_line_when_the_kernel_raises_several():
    assert str(_failure(ValueError("a\n  b"))) == "ValueError: a b"
    assert str(_failure(SystemExit(0))) == "SystemExit: 0"
    assert str(_failure(ValueError())) == "ValueError: no message"


def test_input_and_result_are_copies_when_a_kernel_is_run():
    x = torch.ones(3)
    result = _subject(lambda x: x.mul_(3)).run(x)
    assert x.tolist() == [1.0, 1.0, 1.0]
    assert result.tolist() == [3.0, 3.0, 3.0]
    buffer = torch.zeros(3)
    kept = _subject(buffer.copy_).run(x)
    buffer.zero_()
    assert kept.tolist() == [1.0, 1.0, 1.0]


def test_activity_is_the_kernel_when_it_runs_and_ends_with_it():
    seen = []

    def kernel(x):
        seen.append(activity.running())
        raise ValueError

    with pytest.raises(KernelFailure):
        _subject(kernel).call(torch.ones(1))
    assert seen == [True]
    assert not activity.running()


def test_gradient_is_reached_when_the_kernel_is_differentiable():
    assert differentiable(_subject(torch.nn.functional.gelu))
    assert not differentiable(_subject(lambda x: x.detach()))
    assert not differentiable(_subject(lambda x: None))
    backward = through_autograd(kernels.differentiable(lambda dy, x: dy * 3 + x))
    dy, x = torch.tensor([1.0, 2.0]), torch.tensor([10.0, 20.0])
    assert backward(dy, x).tolist() == [13.0, 26.0]
