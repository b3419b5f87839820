"""Double backward: right where autograd sees all, wrong where a part looks constant to it."""

import pytest
import torch
from torch.autograd.function import once_differentiable
from torch.nn import functional

from gelu_verify.checks.fused import double_backward
from gelu_verify.checks.fused.differentiation import cotangent
from gelu_verify.records import FindingStatus
from tests.cases import failures, messages
from tests.checks.fused.contract_cases import Fused, by_hand, fused_case, slope, sound
from tests.checks.fused.listed_cases import fused_case as listed


class _Once(Fused):
    backward = staticmethod(once_differentiable(Fused.backward))


class _OutOfSight(Fused):
    """All of the backward in kernels of its own."""

    @staticmethod
    def backward(ctx, dy):
        with torch.no_grad():
            return Fused.backward(ctx, dy)


class _SlopeIsConstant(torch.autograd.Function):
    """Recomputes in backward, but takes the slope for a constant."""

    @staticmethod
    def forward(ctx, x, weight, bias):
        ctx.save_for_backward(x, weight, bias)
        return sound(x, weight, bias)

    @staticmethod
    def backward(ctx, dy):
        x, weight, bias = ctx.saved_tensors
        g = dy * slope(torch.nn.functional.linear(x, weight, bias)).detach()
        return g @ weight, g.t() @ x, g.sum(0)


@pytest.mark.parametrize("name", ["fp64", "fp32", "bf16", "fp16"])
def test_second_derivatives_pass_when_autograd_sees_all(name):
    (found,) = double_backward.run(fused_case(sound, name)).findings
    assert found.status is FindingStatus.PASSED, found.message


@pytest.mark.parametrize("name", ["fp32", "bf16"])
@pytest.mark.parametrize("kernel", [by_hand, _SlopeIsConstant.apply])
def test_fault_is_named_when_a_term_is_lost(kernel, name):
    found = failures(double_backward.run(fused_case(kernel, name)))
    said = {f.message.partition(": ")[0] for f in found}
    assert said == {f"second derivative for {part}" for part in ("x", "weight", "bias")}
    assert all("of its norm, expected at most" in f.message for f in found)
    assert all("--case m=4,k=4,n=4" in f.reproduce for f in found)


@pytest.mark.parametrize(
    "kernel",
    [_Once.apply, _OutOfSight.apply, lambda x, weight, bias: sound(x, weight, bias).detach()],
)
def test_check_is_skipped_when_no_second_derivative_is_offered(kernel):
    text = messages(double_backward.run(fused_case(kernel)))
    assert text == "skipped: the kernel's gradient cannot be differentiated"


def _convolution(x, weight, bias):
    y = functional.conv2d(x, weight, bias, padding=1)
    return functional.max_pool2d(functional.relu(y), 2)


class _WeightIsConstant(torch.autograd.Function):
    """A convolution whose gradient for x takes the weight for a constant."""

    @staticmethod
    def forward(ctx, x, weight, bias):
        ctx.save_for_backward(x, weight, bias)
        return _convolution(x, weight, bias)

    @staticmethod
    def backward(ctx, dy):
        x, weight, bias = ctx.saved_tensors
        with torch.enable_grad():
            y = _convolution(x, weight, bias)
            dweight, dbias = torch.autograd.grad(y, (weight, bias), dy, create_graph=True)
            (dx,) = torch.autograd.grad(_convolution(x, weight.detach(), bias), x, dy)
        return dx.detach(), dweight, dbias


@pytest.mark.parametrize("name", ["fp32", "bf16"])
def test_second_derivatives_pass_when_a_maximum_picks_another_argument_nearby(name):
    # In bf16 the case of 17 has two pre-activations that change order within 2^-14 of the inputs.
    texts = ["n=2,c=4,h=4,w=4,o=4", "n=2,c=5,h=17,w=17,o=7"]
    case = listed(_convolution, "conv_relu_pool", name, texts)
    assert messages(double_backward.run(case)) == (
        "passed: second derivatives within 4 times the relative bound of the gradient (2 cases)"
    )


def test_nothing_is_said_of_elements_when_their_maximum_is_a_tie():
    # Equal inputs: what autograd picks in a window has no derivative in other directions.
    case = listed(_convolution, "conv_relu_pool", "fp32", ["n=1,c=2,h=9,w=9,o=3,values=ties"])
    assert not failures(double_backward.run(case))


def test_fault_is_named_when_a_gradient_of_a_convolution_loses_a_term():
    case = listed(_WeightIsConstant.apply, "conv_relu_pool", "bf16", ["n=2,c=5,h=17,w=17,o=7"])
    found = failures(double_backward.run(case))
    assert any(f.message.startswith("second derivative for weight: ") for f in found)


def test_exact_products_are_those_of_autograd_in_float64_when_nothing_jumps():
    case = listed(_convolution, "conv_relu_pool", "bf16", ["n=2,c=5,h=17,w=17,o=7"])
    (problem,) = case.problems
    inputs = case.inputs(problem)
    leaf = [part.double().requires_grad_() for part in inputs]
    y = _convolution(*leaf)
    dy = cotangent(case, problem, y).double().requires_grad_()
    directions = [torch.ones_like(part) for part in inputs]
    gradients = torch.autograd.grad(y, leaf, dy, create_graph=True)[:2]  # that of bias: constant
    weights = [w.double() for w in directions[:2]]
    expected = torch.autograd.grad(gradients, (*leaf, dy), weights, retain_graph=True)
    # f' in the direction of the bias, too: its Jacobian is linear in dy.
    expected = [*expected[:3], _moved(leaf, directions)]
    for part, right in zip(
        double_backward._exact(case, dy, inputs, directions), expected, strict=True
    ):
        assert part.smooth.float().mean() > 0.99
        off = (part.value - right)[part.smooth].abs().max()
        assert off <= 1e-6 * right.abs().max()


def _moved(leaf, directions):
    given = tuple(part.detach() for part in leaf)
    return torch.func.jvp(_convolution, given, tuple(w.double() for w in directions))[1]


@pytest.mark.parametrize(
    "text", ["m=0,k=3,n=4", "m=3,k=4,n=5,values=one_nan", "m=3,k=4,n=5,values=ladder"]
)
def test_check_is_skipped_when_a_case_is_empty_or_not_finite(text):
    text = messages(double_backward.run(fused_case(sound, "fp16", cases=[text])))
    assert text == "skipped: no case that this check can judge"
