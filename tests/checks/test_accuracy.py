"""Accuracy: the sweep judged by the contract."""

import pytest

from gelu_verify.checks import accuracy
from gelu_verify.records import FindingStatus
from tests import faulty_kernels as kernels
from tests.cases import backward, case, failures, messages


@pytest.mark.parametrize(
    ("kernel", "contract", "formula"),
    [
        (kernels.correct, "faithful", "erf"),
        (kernels.correct_tanh, "faithful", "tanh"),
        (kernels.correct_sigmoid, "faithful", "sigmoid"),
        (kernels.guarded, "saturating", "erf"),
        (kernels.textbook, "cancelling", "erf"),
        (kernels.correct_tanh, "approximation", "erf"),
    ],
)
def test_contract_holds_when_the_kernel_is_sound(kernel, contract, formula):
    outcome = accuracy.run(case(kernel, "bf16", contract=contract, formula=formula))
    assert messages(outcome) == f"passed: 65,536 inputs hold {contract}"


def test_contract_holds_when_fp32_is_textbook():
    outcome = accuracy.run(case(kernels.textbook, "fp32"))
    assert not failures(outcome)
    assert outcome.fields["tightest"].contract == "cancelling"


def test_guard_is_named_as_what_holds_when_a_stricter_contract_breaks():
    outcome = accuracy.run(case(kernels.guarded, contract="tail_accurate"))
    (found,) = failures(outcome)
    assert "saturating would pass" in found.message
    # Of those beyond 6 the one whose exact value is nearest below a power of two: 254.9 ULP lost.
    assert found.input == "x = -8.625 (0xC10A)"
    assert "collapse" in found.message


def test_allowance_is_counted_when_a_guard_needs_it():
    record = accuracy.run(case(kernels.guarded, contract="saturating")).fields["accuracy"]
    used = {(use.allowance, use.region): use.count for use in record.allowances}
    # bf16 from -6.03125 to -13.5 (the last before the zero threshold -13.5625): 63 in the binade
    # of 4 (-6.03125 .. -7.96875), and 89 in that of 8 (-8 .. -13.5); the exact values of the last
    # two are below 4 of the smallest subnormals, within the limit without any allowance.
    assert used == {("guard", "deep_tail"): 63 + 89 - 2}


@pytest.mark.parametrize(
    ("kernel", "shown", "part"),
    [
        (kernels.above_identity, "x = 2.015625 (0x4001)", "inputs break cancelling"),
        (kernels.sign_flips_at_one, "x = -1.0 (0xBF80)", "(opposite_sign)"),
        (kernels.exp_quotient, "x = 10.0625 (0x4121)", "nan_for_number"),
    ],
)
def test_worst_input_is_shown_when_a_kernel_is_wrong_there(kernel, shown, part):
    formula = "tanh" if kernel is kernels.exp_quotient else "erf"
    result = case(kernel, formula=formula)
    (found,) = failures(accuracy.run(result))
    assert part in found.message
    assert "nan ULP" not in found.message
    if kernel is not kernels.above_identity:
        assert found.input == shown
        assert found.reproduce.endswith(f"--input {shown[-7:-1]}")


def test_exactly_one_input_is_counted_when_one_is_wrong():
    (found,) = failures(accuracy.run(case(kernels.sign_flips_at_one)))
    assert found.message.startswith("1 of 65,536 inputs break cancelling")


def test_a_verdict_is_reached_when_every_result_is_nan():
    outcome = accuracy.run(case(lambda x: x * float("nan")))
    (found,) = failures(outcome)
    # 2^16 patterns less 2 infinities and 2·127 NaNs.
    assert found.message == "none of 65,280 finite inputs gives a finite result"
    assert found.input is not None
    assert "accuracy" not in outcome.fields


def test_wrong_tail_is_found_between_samples_when_the_format_is_fp32():
    (found,) = failures(accuracy.run(case(kernels.flat_in_fit_domain, "fp32")))
    assert found.status is FindingStatus.FAILED


@pytest.mark.parametrize(
    "kernel",
    [
        kernels.wrong_sign_near_minus_37,
        kernels.without_density,
        kernels.derivative_one_too_early,
        kernels.nan_at_large,
    ],
)
@pytest.mark.parametrize("direct", [True, False])
def test_backward_fault_is_found_when_reached(kernel, direct):
    if direct:
        result = backward(kernel, "fp32")
    else:
        result = backward(kernels.differentiable(kernel), "fp32", via="autograd")
    (found,) = failures(accuracy.run(result))
    assert found.input.startswith("dy = ")
    if kernel is kernels.wrong_sign_near_minus_37:
        x = float(found.input.split("x = ")[1].split(" ")[0])
        assert -3.8 < x < -3.6
        assert "(opposite_sign)" in found.message


@pytest.mark.parametrize("name", ["bf16", "fp32"])
def test_backward_holds_when_it_is_sound(name):
    outcome = accuracy.run(backward(kernels.correct_backward, name))
    assert not failures(outcome)
    direct = accuracy.run(
        backward(kernels.differentiable(kernels.correct_backward), name, via="autograd")
    )
    assert direct.fields["accuracy"] == outcome.fields["accuracy"]


def test_nothing_is_measured_when_only_infinities_are_replayed():
    outcome = accuracy.run(case(kernels.correct, replay=((0x7F80,),)))
    assert not outcome.findings
