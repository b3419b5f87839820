"""Conduct: what a kernel does besides its values."""

import itertools

import pytest
import torch

from gelu_verify.checks import conduct
from gelu_verify.kernels.subject import KernelFailure, ResultFault
from tests import faulty_kernels as kernels
from tests.cases import backward, case, failures, messages


@pytest.mark.parametrize("name", ["bf16", "fp32"])
def test_conduct_passes_when_the_kernel_is_sound(name):
    assert messages(conduct.run(case(kernels.correct, name))).startswith("passed: shape, dtype")
    assert not failures(conduct.run(backward(kernels.correct_backward, name)))


@pytest.mark.parametrize(
    ("kernel", "message"),
    [
        (kernels.overwrites_input, "argument x was overwritten"),
        (kernels.SameBuffer(), "two calls return the same storage"),
        (kernels.Restless(), "two identical calls differ in"),
        (lambda x: x, "the result shares storage with an argument"),
        (kernels.raises_on_empty, "empty input: RuntimeError: invalid configuration argument"),
    ],
)
def test_fault_is_named_when_a_kernel_misbehaves(kernel, message):
    found = failures(conduct.run(case(kernel)))
    assert any(message in f.message for f in found)
    assert all(f.reproduce for f in found)


def test_refusal_is_said_when_empty_input_is_declined():
    def kernel(x):
        if not x.numel():
            raise ValueError("x is empty")
        return kernels.correct(x)

    (found,) = failures(conduct.run(case(kernel)))
    assert found.message == "empty input refused: ValueError: x is empty"


def test_next_call_is_made_when_an_empty_one_poisons_it():
    state = []

    def kernel(x):
        if state:
            raise RuntimeError("CUDA error: an illegal memory access")
        if not x.numel():
            state.append(1)
        return kernels.correct(x)

    (found,) = failures(conduct.run(case(kernel)))
    assert found.message.startswith("the call after an empty one failed: RuntimeError")


@pytest.mark.parametrize(
    ("kernel", "message"),
    [
        (kernels.other_dtype, "got torch.float64 (4099,), expected torch.bfloat16 (4099,)"),
        (kernels.other_shape, "got torch.bfloat16 (1, 4099), expected torch.bfloat16 (4099,)"),
        (kernels.other_device, "got a tensor on meta, expected cpu"),
        (lambda x: None, "got NoneType, expected a torch.Tensor"),
        (lambda x: (x, x), "got tuple, expected a torch.Tensor"),
    ],
)
def test_result_is_refused_when_it_is_of_another_kind(kernel, message):
    with pytest.raises(ResultFault, match="kernel result") as caught:
        conduct.run(case(kernel))
    assert message in str(caught.value)


def test_kernel_failure_carries_the_cause_when_the_kernel_raises():
    def kernel(x):
        raise OSError("lib.so\n not found")

    with pytest.raises(KernelFailure, match=r"OSError: lib\.so not found") as caught:
        conduct.run(case(kernel))
    assert isinstance(caught.value.__cause__, OSError)


def test_overwriting_is_not_measured_when_the_sweep_runs():
    result = case(kernels.overwrites_input)
    before = result.sweep.digest
    assert result.elements.errors.finite.any()
    assert result.sweep.digest == before


def test_other_calls_are_named_when_a_result_depends_on_them():
    seen = []

    def kernel(x):
        y = kernels.correct(x)
        seen.append(x.numel())
        return y * 1.01 if len(set(seen)) > 1 and x.numel() > 1000 else y

    found = failures(conduct.run(case(kernel)))
    assert found[0].message.startswith("identical calls with others between differ in")


def test_drift_is_named_when_many_calls_change_a_result():
    calls = itertools.count()

    def kernel(x):
        y = kernels.correct(x)
        return y if next(calls) < 100 else y * 1.01

    (found,) = failures(conduct.run(case(kernel)))
    assert found.message.startswith("after 256 calls identical ones differ in")


def test_argument_is_not_to_be_returned_where_the_result_is_equal_to_it():
    def kernel(x):
        saturated = x.numel() and bool((x > 20).all())
        return x if saturated else kernels.correct(x)

    found = failures(conduct.run(case(kernel)))
    assert found[0].message == "saturated input: the result shares storage with an argument"


def test_call_after_an_empty_one_is_compared():
    empty = []

    def kernel(x):
        if not x.numel():
            empty.append(x)
        y = kernels.correct(x)
        return y * 0 if empty and x.numel() else y

    (found,) = failures(conduct.run(case(kernel)))
    assert found.message.startswith("the call after an empty one differs in")


def test_saved_tensors_must_outlive_another_forward():
    kept = {}

    class Shared(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.kept = kept.setdefault(x.shape, torch.empty_like(x)).copy_(x)
            return kernels.correct(x)

        @staticmethod
        def backward(ctx, dy):
            return kernels.correct_backward(dy, ctx.kept)

    sound = kernels.differentiable(kernels.correct_backward)
    assert not failures(conduct.run(backward(sound, via="autograd")))
    (found,) = failures(conduct.run(backward(Shared.apply, via="autograd")))
    assert found.message.startswith("another forward in between changes the gradient in")
