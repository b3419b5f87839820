"""Memory of elementwise kernels: guard bands around arguments and what the kernel allocates."""

import pytest
import torch

from gelu_verify.checks import memory
from tests import faulty_kernels as kernels
from tests.cases import backward, case, failures, messages


def unwritten(x):
    y = torch.empty_like(x)
    whole = x.numel() // 8 * 8
    y[:whole] = kernels.correct(x[:whole])
    return y


def _behind(x, count):
    at = x.storage_offset() + x.numel()
    return torch.as_strided(x, (count,), (1,), at)


def writes_behind(x):
    y = torch.empty_like(x).copy_(kernels.correct(x))
    _behind(y, 3).zero_()
    return y


def reads_behind(x):
    y = kernels.correct(x)
    y[-1] = 0.25 * _behind(x, 1)[0]
    return y


def overwrites(x):
    y = kernels.correct(x)
    x[0] = 0.5
    return y


@pytest.mark.parametrize("name", ["bf16", "fp32", "fp8_e5m2"])
def test_memory_holds_when_the_kernel_is_sound(name):
    kernel = kernels.correct
    if name == "fp8_e5m2":

        def kernel(x):
            return kernels.correct(x.float()).to(x.dtype)

    assert messages(memory.run(case(kernel, name))).startswith("passed: nothing read or written")
    assert not failures(memory.run(backward(kernels.correct_backward)))
    sound = kernels.differentiable(kernels.correct_backward)
    assert not failures(memory.run(backward(sound, via="autograd")))


@pytest.mark.parametrize(
    ("kernel", "message"),
    [
        (unwritten, "1 elements: 1 elements of the result never written"),
        (writes_behind, "1 elements: 12 bytes written outside buffer 1 of the kernel (1,), up to"),
        (reads_behind, "1 elements of the result depend on memory outside the arguments"),
        (overwrites, "argument x was overwritten (1 elements of it)"),
    ],
)
def test_fault_is_named_when_memory_is_misused(kernel, message):
    found = failures(memory.run(case(kernel, "fp32")))
    assert any(message in f.message for f in found), messages(memory.run(case(kernel, "fp32")))
    assert all(f.reproduce for f in found)


def test_fused_operators_are_left_to_their_own_check():
    assert not memory.run(case(kernels.geglu_once, operator="geglu")).findings


def test_refusal_is_noted():
    def kernel(x):
        if x.numel() == 33:
            raise ValueError("no odd sizes")
        return kernels.correct(x)

    outcome = memory.run(case(kernel))
    assert not failures(outcome)
    assert "noted: 33 elements refused: ValueError: no odd sizes" in messages(outcome)
