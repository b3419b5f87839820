"""The canaries: what the interpreter must get right before its results count."""

import os

import pytest
import torch

from gelu_verify.kernels import canary

pytest.importorskip("triton", reason="Triton is not installed here")
pytestmark = pytest.mark.skipif(
    os.environ.get("TRITON_INTERPRET") != "1", reason="kernels are compiled on this machine"
)


def test_required_canaries_are_right_when_this_triton_interprets():
    results = canary.results()
    assert set(canary.REQUIRED) <= set(results)
    assert [name for name in canary.REQUIRED if not results[name]] == []


@pytest.mark.parametrize(
    "actual",
    [
        None,
        torch.tensor([1.0, 0.0]),  # the sign of zero is lost
        torch.tensor([1.0, -0.0], dtype=torch.bfloat16),
        torch.tensor([1.0]),
    ],
)
def test_canary_is_wrong_when_one_bit_is(actual):
    assert not canary._same(actual, torch.tensor([1.0, -0.0]))
    assert canary._same(torch.tensor([1.0, -0.0]), torch.tensor([1.0, -0.0]))
