"""The activation of a fused kernel, judged apart from its sums."""

import pytest
import torch
from torch.nn import functional

from gelu_verify import contracts, formats
from gelu_verify.checks.fused import FusedCase, identity
from gelu_verify.job import Job
from gelu_verify.kernels.spec import Declared, KernelSpec
from gelu_verify.kernels.subject import Callee, ResultFault
from gelu_verify.operators import fused
from gelu_verify.records import FindingStatus
from reference_kernels import torch_fused
from tests import emulated, faulty_kernels


def _run(function, name="bf16", formula="erf", contract="cancelling", **declared):
    spec = KernelSpec(
        name="k.py:f",
        target="k.py:f",
        operator="linear_gelu",
        formula=formula,
        arithmetic=Declared(**declared),
    )
    job = Job(
        spec=spec,
        operator="linear_gelu",
        formula=formula,
        format=name,
        contract=contracts.get(contract),
    )
    subject = Callee("f", formula, formats.get(name), torch.device("cpu"), function)
    return identity.run(FusedCase(job, subject)), subject


def _after_linear(activation):
    def kernel(x, weight, bias):
        return activation(functional.linear(x, weight, bias))

    return kernel


def _failed(outcome):
    return [f for f in outcome.findings if f.status is FindingStatus.FAILED]


@pytest.mark.parametrize("name", ["bf16", "fp16"])
@pytest.mark.parametrize("contract", ["faithful", "cancelling"])
def test_every_finite_value_is_judged_when_the_format_has_16_bits(name, contract):
    outcome, subject = _run(_after_linear(faulty_kernels.correct), name, contract=contract)
    assert not _failed(outcome)
    record = outcome.fields["accuracy"]
    assert record.inputs == record.finite_inputs == formats.get(name).finite_count
    assert record.max_error_ulp < 0.501
    assert outcome.fields["formula_found"].found == "erf"
    assert outcome.fields["saturation"].zero_from is not None
    assert all("inf" not in s.input for s in outcome.fields["special_values"])
    assert {f.check for f in outcome.findings} == {"identity"}
    assert subject.seconds > 0.0


def test_message_names_both_formulas_when_another_is_computed():
    outcome, _ = _run(torch_fused.linear_gelu_tanh)
    (found,) = [f for f in _failed(outcome) if "formula" in f.message]
    assert found.message.startswith("formula: declared erf, computes tanh")
    assert found.reproduce is not None
    assert "--operator linear_gelu" in found.reproduce
    assert "--input" not in found.reproduce


def test_addmm_activation_computes_erf_when_on_a_cpu():
    outcome, _ = _run(torch_fused.linear_gelu_epilogue, "fp32")
    assert outcome.fields["formula_found"].found == "erf"
    outcome, _ = _run(torch_fused.linear_gelu_epilogue, "fp32", formula="tanh")
    assert any("declared tanh, computes erf" in f.message for f in _failed(outcome))


def test_guard_is_found_when_the_contract_forbids_it():
    outcome, _ = _run(_after_linear(faulty_kernels.guarded), "fp32", contract="tail_accurate")
    assert any(f.message.startswith("accuracy: ") for f in _failed(outcome))
    assert outcome.fields["saturation"].zero_from == pytest.approx(-6.0, abs=1e-3)


def test_inputs_are_those_that_products_hold_when_rounding_is_declared():
    def rounds(x, weight, bias):
        x = emulated.rounded(x.double(), "tf32").to(x.dtype)
        return faulty_kernels.correct(functional.linear(x, weight, bias))

    undeclared, _ = _run(rounds, "fp32")
    declared, _ = _run(rounds, "fp32", products="tf32")
    assert any(f.message.startswith("accuracy: ") for f in _failed(undeclared))
    assert not _failed(declared)
    assert declared.fields["accuracy"].inputs > 4000
    assert declared.fields["formula_found"].found == "erf"


def test_lost_zero_sign_and_nan_of_infinity_are_not_held_against_a_kernel():
    def kernel(x, weight, bias):
        return faulty_kernels.correct(x @ weight.t() + bias)

    x = torch.tensor([[-0.0]])
    assert not torch.signbit(kernel(x, torch.eye(1), torch.zeros(1)))
    outcome, _ = _run(kernel, "bf16", contract="faithful")
    assert not _failed(outcome)
    assert any("not judged" in f.message for f in outcome.findings)


def test_wrong_shape_is_a_fault_of_the_result():
    with pytest.raises(ResultFault, match="expected"):
        _run(lambda x, weight, bias: functional.gelu(functional.linear(x, weight, bias)).t()[:1])


def test_identity_is_skipped_when_the_operator_has_none(monkeypatch):
    operator = fused.get("linear_gelu")
    monkeypatch.setattr(type(operator), "identity", lambda self, x: None)
    outcome, _ = _run(torch_fused.linear_gelu)
    assert [f.status for f in outcome.findings] == [FindingStatus.SKIPPED]
