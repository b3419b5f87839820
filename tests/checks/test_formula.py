"""Formula: which GELU it is."""

import re

import pytest

from gelu_verify.checks import formula
from gelu_verify.records import FindingStatus
from tests import faulty_kernels as kernels
from tests.cases import backward, case, failures, messages

NAMES = ["bf16", "fp16", "fp32"]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(
    ("kernel", "declared"),
    [
        (kernels.correct, "erf"),
        (kernels.textbook, "erf"),
        (kernels.guarded, "erf"),
        (kernels.correct_tanh, "tanh"),
        (kernels.correct_sigmoid, "sigmoid"),
    ],
)
def test_formula_passes_when_the_declared_one_is_computed(kernel, declared, name):
    outcome = formula.run(case(kernel, name, formula=declared))
    assert messages(outcome).startswith(f"passed: computes {declared}")
    assert outcome.fields["formula_found"].found == declared


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(
    ("kernel", "declared", "computed"),
    [
        (kernels.correct_tanh, "erf", "tanh"),
        (kernels.correct, "tanh", "erf"),
        (kernels.correct_sigmoid, "erf", "sigmoid"),
        (kernels.correct, "sigmoid", "erf"),
    ],
)
def test_formula_fails_when_another_is_computed(kernel, declared, computed, name):
    (found,) = failures(formula.run(case(kernel, name, formula=declared)))
    assert found.message.startswith(f"declared {declared}, computes {computed} (")
    assert found.message.endswith(f"check with --formula {computed} if that is meant")


def test_tanh_is_a_note_when_the_contract_is_approximation():
    outcome = formula.run(case(kernels.correct_tanh, "fp32", contract="approximation"))
    assert [f.status for f in outcome.findings] == [FindingStatus.NOTED]


@pytest.mark.parametrize(("name", "tolerance"), [("bf16", 2e-3), ("fp16", 2e-4), ("fp32", 1e-6)])
@pytest.mark.parametrize("declared", ["erf", "sigmoid"])
def test_coefficient_is_fitted_when_quick_gelu_uses_1773(name, tolerance, declared):
    record = formula.run(case(kernels.quick_1773, name, formula=declared)).fields["formula_found"]
    assert record.found == "other"
    (constant,) = re.fullmatch(r"x·σ\((.*)x\)", record.fitted).groups()
    assert float(constant) == pytest.approx(1.773, abs=tolerance)


@pytest.mark.parametrize(("name", "tolerance"), [("bf16", 2e-3), ("fp16", 2e-4), ("fp32", 1e-6)])
def test_scale_is_fitted_when_erf_uses_070(name, tolerance):
    outcome = formula.run(case(kernels.erf_of_070, name))
    assert failures(outcome)
    fitted = outcome.fields["formula_found"].fitted
    (constant,) = re.fullmatch(r"x·Φ\((.*)x\)", fitted).groups()
    # 0.70·√2
    assert float(constant) == pytest.approx(0.98994949, abs=tolerance)


@pytest.mark.parametrize(("name", "tolerance"), [("bf16", 5e-3), ("fp16", 5e-4), ("fp32", 2e-6)])
def test_both_constants_are_fitted_when_tanh_has_others(name, tolerance):
    fitted = formula.run(case(kernels.tanh_other_constants, name)).fields["formula_found"].fitted
    found = re.fullmatch(r"0\.5x\(1\+tanh\((.*)\(x([+-].*)x³\)\)\)", fitted).groups()
    assert [float(part) for part in found] == pytest.approx([0.8, 0.03], abs=tolerance)


@pytest.mark.parametrize("kernel", [lambda x: x * 0 + 1, lambda x: x.relu(), lambda x: x / 0])
def test_nothing_is_claimed_when_it_is_no_gelu(kernel):
    outcome = formula.run(case(kernel))
    (found,) = failures(outcome)
    assert "computes none of the known formulas" in found.message
    assert outcome.fields["formula_found"].candidates == ()


def test_derivative_is_told_apart_when_the_operator_is_backward():
    assert not failures(formula.run(backward(kernels.correct_backward)))
    (found,) = failures(formula.run(backward(kernels.correct_backward, formula="tanh")))
    assert "declared tanh, computes erf" in found.message
    assert failures(formula.run(backward(kernels.without_density)))
