"""Opcheck: operators registered with one fault each."""

import pytest
import torch
from torch import Tensor
from torch.nn import functional

from gelu_verify.checks.fused import memory, opcheck
from gelu_verify.records import FindingStatus
from tests.cases import failures, messages
from tests.checks.fused.contract_cases import fused_case, sound

_HELD = (
    "passed: test_schema, test_autograd_registration, test_faketensor and "
    "test_aot_dispatch_dynamic of torch.library.opcheck hold (1 cases)"
)


def _sound(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    return functional.gelu(functional.linear(x, weight, bias))


def _shape(x, weight, bias):
    return x.new_empty(*x.shape[:-1], weight.shape[0])


def _other_shape(x, weight, bias):
    return x.new_empty(weight.shape[0], *x.shape[:-1])


def _doubling(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    y = _sound(x, weight, bias)
    bias.mul_(2)
    return y


def _operator(name, function=_sound, fake=_shape):
    made = torch.library.custom_op(f"gelu_verify_opcheck::{name}", function, mutates_args=())
    if fake:
        made.register_fake(fake)
    return made


def test_every_part_is_named_when_an_operator_holds():
    _operator("holds")
    outcome = opcheck.run(fused_case(torch.ops.gelu_verify_opcheck.holds))
    assert messages(outcome) == _HELD


def test_gradient_is_traced_when_it_is_registered():
    made = _operator("differentiable")

    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs)

    def backward(ctx, dy):
        x, weight, bias = ctx.saved_tensors
        g = torch.ops.aten.gelu_backward(dy, functional.linear(x, weight, bias))
        return g @ weight, g.t() @ x, g.sum(0)

    made.register_autograd(backward, setup_context=setup_context)
    outcome = opcheck.run(fused_case(made))
    assert messages(outcome) == _HELD


def test_other_tests_are_named_when_one_fails():
    made = _operator("reads_data")

    def backward(ctx, dy):
        return dy.new_full(ctx.shape, 1.0 if dy.sum() > 0 else 2.0), None, None

    made.register_autograd(
        backward,
        setup_context=lambda ctx, inputs, output: setattr(ctx, "shape", inputs[0].shape),
    )
    (found,) = failures(opcheck.run(fused_case(made)))
    assert found.message.startswith("test_aot_dispatch_dynamic: ")
    assert "(test_schema, test_autograd_registration, test_faketensor held)" in found.message


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("no_fake", {"fake": None}, "test_faketensor: RuntimeError: There was no fake impl"),
        ("other_fake", {"fake": _other_shape}, "test_faketensor: "),
        ("mutates", {"function": _doubling}, "test_schema: "),
    ],
)
def test_fault_is_named_when_a_registration_is_wrong(name, options, message):
    found = failures(opcheck.run(fused_case(_operator(name, **options))))
    assert any(f.message.startswith(message) for f in found), [f.message for f in found]
    assert all(f.reproduce for f in found)


def test_check_is_skipped_when_the_kernel_is_a_function():
    outcome = opcheck.run(fused_case(sound))
    assert messages(outcome) == "skipped: the kernel is no registered torch operator"


def test_memory_of_an_operator_is_guarded():
    _operator("guarded")
    outcome = memory.run(fused_case(torch.ops.gelu_verify_opcheck.guarded))
    assert [f.status for f in outcome.findings] == [FindingStatus.PASSED]
