"""Determinism: kernels whose bits change from call to call."""

import itertools

import pytest
import torch

from gelu_verify.checks.fused import determinism
from gelu_verify.records import FindingStatus
from tests.cases import failures, messages
from tests.checks.fused.contract_cases import Fused, by_hand, fused_case, sound


def every_third():
    """Another last bit in one element of every third result."""
    calls = itertools.count(1)

    def kernel(x, weight, bias):
        y = sound(x, weight, bias)
        if next(calls) % 3 == 0:
            y.detach()[-1, -1] *= 1 + 2**-7
        return y

    return kernel


def after_another_size():
    """Keeps something of the last shape: only a call at another size shows it."""
    shapes = []

    def kernel(x, weight, bias):
        stale = bool(shapes) and shapes[-1] != x.shape
        shapes.append(x.shape)
        y = sound(x, weight, bias)
        return y + 1 if stale and len(shapes) > 4 else y

    return kernel


class _RandomGradient(Fused):
    @staticmethod
    def backward(ctx, dy):
        dx, dweight, dbias = Fused.backward(ctx, dy)
        return dx, dweight, dbias * (1 + 2**-7 * torch.randint(2, dbias.shape))


@pytest.mark.parametrize("kernel", [sound, by_hand])
def test_determinism_passes_when_the_kernel_repeats(kernel):
    (found,) = determinism.run(fused_case(kernel)).findings
    assert found.message.startswith("4 repeats, with other calls between, bit for bit the same")


@pytest.mark.parametrize(
    ("kernel", "message"),
    [
        (every_third(), "the result of the same call differs"),
        (every_third(), "in 1 of 289 elements; most at [16, 16]"),
        (after_another_size(), "the result of the same call differs, repeat 2"),
        (_RandomGradient.apply, "dbias of the same call differs, repeat 1"),
    ],
)
def test_fault_is_named_when_bits_change(kernel, message):
    found = failures(determinism.run(fused_case(kernel)))
    assert any(message in f.message for f in found), [f.message for f in found]
    assert all("--case m=" in f.reproduce for f in found)


def test_difference_is_noted_when_it_is_declared():
    outcome = determinism.run(fused_case(_RandomGradient.apply, nondeterministic="atomic sums"))
    assert not failures(outcome)
    assert {f.status for f in outcome.findings} == {FindingStatus.NOTED}
    assert "elements; most at" in messages(outcome)
    assert messages(outcome).endswith("Declared: atomic sums")
