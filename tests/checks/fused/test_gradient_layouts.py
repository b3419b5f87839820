"""Gradient layouts: backwards that take dy's memory for contiguous."""

import pytest
import torch

from gelu_verify.checks.fused import gradient_layouts
from gelu_verify.records import FindingStatus
from tests.cases import failures, messages
from tests.checks.fused.contract_cases import Fused, by_hand, fused_case, sound


class _AsIfContiguous(Fused):
    """Reads numel() elements from dy's pointer on, in the order of memory."""

    @staticmethod
    def backward(ctx, dy):
        storage = dy.untyped_storage().nbytes() // dy.element_size() - dy.storage_offset()
        flat = dy.as_strided((min(storage, dy.numel()),), (1,))
        memory = torch.cat([flat, flat.new_full((dy.numel() - flat.numel(),), 100.0)])
        return Fused.backward(ctx, memory.view(dy.shape))


class _Refuses(Fused):
    @staticmethod
    def backward(ctx, dy):
        if not dy.is_contiguous():
            raise ValueError("dy must be contiguous")
        return Fused.backward(ctx, dy)


class _IgnoresOffset(Fused):
    """Reads from the start of dy's storage."""

    @staticmethod
    def backward(ctx, dy):
        return Fused.backward(ctx, dy.as_strided(dy.shape, dy.stride(), 0))


@pytest.mark.parametrize("kernel", [sound, by_hand])
def test_layouts_pass_when_the_backward_reads_strides(kernel):
    (found,) = gradient_layouts.run(fused_case(kernel)).findings
    assert found.status is FindingStatus.PASSED, found.message
    assert found.message.startswith("within the bound for dy expanded, stride 0; one row expanded;")


@pytest.mark.parametrize("layout", list(gradient_layouts.LAYOUTS)[:4])
def test_fault_is_named_when_strides_are_ignored(layout):
    found = failures(gradient_layouts.run(fused_case(_AsIfContiguous.apply)))
    assert any(f.message.startswith(f"dy {layout}, dx: ") for f in found)
    assert all("--case m=" in f.reproduce for f in found)


def test_fault_is_named_when_the_offset_is_ignored():
    found = failures(gradient_layouts.run(fused_case(_IgnoresOffset.apply)))
    assert {f.message.partition(",")[0] for f in found} == {"dy misaligned by one element"}


def test_refusal_fails_because_autograd_gives_such_dy():
    found = failures(gradient_layouts.run(fused_case(_Refuses.apply)))
    assert "dy expanded, stride 0, backward: ValueError: dy must be contiguous" in [
        f.message for f in found
    ]


def test_check_is_skipped_when_there_is_no_gradient():
    outcome = gradient_layouts.run(fused_case(lambda x, w, b: sound(x, w, b).detach()))
    assert messages(outcome) == "skipped: the kernel has no gradient"
