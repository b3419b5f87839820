"""Gradient formula: a forward of one GELU with the backward of another."""

import pytest
from torch.nn import functional

from gelu_verify.checks.fused import gradient_formula
from gelu_verify.records import FindingStatus
from tests.cases import failures, messages
from tests.checks.fused.contract_cases import fused_case, sound


def mixed(forward, backward):
    """y of one form, gradients of another: y = g - stopped(g) + stopped(f)."""

    def kernel(x, weight, bias):
        z = functional.linear(x.double(), weight.double(), bias.double())
        value, slope = (
            functional.gelu(z, approximate=forward),
            functional.gelu(z, approximate=backward),
        )
        return (slope + (value - slope).detach()).to(x.dtype)

    return kernel


@pytest.mark.parametrize("name", ["fp32", "bf16", "fp64"])
@pytest.mark.parametrize(("form", "formula"), [("none", "erf"), ("tanh", "tanh")])
def test_formula_is_found_when_forward_and_gradient_agree(form, formula, name):
    outcome = gradient_formula.run(fused_case(mixed(form, form), name, formula=formula))
    (found,) = outcome.findings
    assert found.status is FindingStatus.PASSED, found.message
    assert found.message.startswith("forward and gradient are of ")
    assert formula in found.message.partition("(")[0]


@pytest.mark.parametrize("name", ["fp32", "bf16", "fp16"])
@pytest.mark.parametrize(
    ("forward", "backward", "declared", "nearest"),
    [("none", "tanh", "erf", "tanh"), ("tanh", "none", "tanh", "erf")],
)
def test_check_fails_when_the_gradient_is_of_another_formula(
    forward, backward, declared, nearest, name
):
    case = fused_case(mixed(forward, backward), name, formula=declared)
    (found,) = failures(gradient_formula.run(case))
    message = f"the gradient is nearer to the {nearest} formula than to {declared} (error/bound: "
    assert found.message.startswith(message)
    assert "gradient erf " in found.message
    assert found.reproduce


def test_check_fails_when_forward_and_gradient_have_no_common_formula():
    (found,) = failures(gradient_formula.run(fused_case(mixed("tanh", "none"), "fp32")))
    assert found.message.startswith("forward and gradient are of different formulas")


def test_check_is_skipped_when_there_is_no_gradient():
    outcome = gradient_formula.run(fused_case(lambda x, w, b: sound(x, w, b).detach()))
    assert messages(outcome) == "skipped: the kernel has no gradient"
