"""The activation of a fused kernel, judged apart from its sums."""

import io

import pytest
import torch
from rich.console import Console
from torch.nn import functional

from gelu_verify import contracts, formats, pipeline
from gelu_verify.checks.fused import FusedCase, identity
from gelu_verify.job import Job, plan
from gelu_verify.kernels.spec import KernelSpec
from gelu_verify.kernels.subject import Callee, ResultFault
from gelu_verify.operators import fused
from gelu_verify.records import FindingStatus
from gelu_verify.report import terminal
from reference_kernels import torch_fused
from tests import emulated, faulty_kernels
from tests.builders import results


def _run(function, name="bf16", formula="erf", contract="cancelling"):
    spec = KernelSpec(
        name="k.py:f",
        target="k.py:f",
        operator="linear_gelu",
        formula=formula,
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


@pytest.mark.parametrize("arithmetic", ["tf32", "bf16"])
def test_activation_is_judged_apart_when_products_are_narrow(arithmetic):
    def rounds(x, weight, bias):
        x = emulated.rounded(x.double(), arithmetic).to(x.dtype)
        return faulty_kernels.correct(functional.linear(x, weight, bias))

    outcome, _ = _run(rounds, "fp32")
    assert not _failed(outcome)
    assert outcome.fields["accuracy"].inputs > 2000
    assert outcome.fields["formula_found"].found == "erf"
    kept = {"tf32": 11, "bf16": 8}[arithmetic]
    assert f"only inputs of {kept} bits" in outcome.findings[-1].message


@pytest.mark.parametrize("name", ["fp32", "bf16"])
def test_activation_is_judged_apart_when_products_are_fp16(name):
    def rounds(x, weight, bias):
        sums = functional.linear(x.half().double(), weight.half().double(), bias.double())
        return faulty_kernels.correct(sums).to(x.dtype)

    outcome, _ = _run(rounds, name)
    assert not _failed(outcome)
    assert outcome.fields["accuracy"].inputs > 2000


def test_activation_is_judged_apart_when_partial_sums_are_narrow():
    outcome, _ = _run(emulated.linear_gelu(emulated.in_blocks(32, "bf16")), "fp32")
    assert not _failed(outcome)
    assert outcome.fields["formula_found"].found == "erf"


@pytest.mark.parametrize("value", [float("nan"), float("inf"), 0.0, 1.0])
def test_nothing_holds_when_every_result_is_one_value(value):
    def kernel(x, weight, bias):
        return torch.full((x.shape[0], weight.shape[0]), value, dtype=x.dtype)

    outcome, _ = _run(kernel)
    assert any(f.message.startswith("accuracy: ") for f in _failed(outcome))


def test_lengths_are_noted_when_the_kernel_refuses_them():
    def kernel(x, weight, bias):
        if x.shape[1] % 16:
            raise ValueError("K must be a multiple of 16")
        return torch_fused.linear_gelu(x, weight, bias)

    outcome, _ = _run(kernel)
    assert not _failed(outcome)
    refused = [f for f in outcome.findings if "refused" in f.message]
    assert [f.message.split(":")[0] for f in refused] == ["special values"]
    assert outcome.fields["accuracy"].inputs == formats.get("bf16").finite_count


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


def test_identity_is_skipped_when_the_kernel_refuses_its_size():
    def kernel(x, weight, bias):
        raise ValueError("K must be 768")

    outcome, _ = _run(kernel)
    assert [f.status for f in outcome.findings] == [FindingStatus.SKIPPED]


def test_identity_is_skipped_when_the_operator_has_none(monkeypatch):
    operator = fused.get("linear_gelu")
    monkeypatch.setattr(type(operator), "identity", lambda self, x: None)
    outcome, _ = _run(torch_fused.linear_gelu)
    assert [f.status for f in outcome.findings] == [FindingStatus.SKIPPED]


def test_result_of_a_fused_job_has_the_figures_of_its_activation():
    (task,) = plan("torch-linear-gelu", format_names=("bf16",), depth="quick")
    result = pipeline.check(task, lambda check, so_far: None)
    assert result is not None
    assert result.accuracy is not None
    assert result.formula_found is not None
    assert result.formula_found.found == "erf"
    assert result.fingerprint is not None
    assert result.fingerprint.behaves_like == "fp32_accumulation"
    assert "max error" in _shown(result)


def _shown(result):
    target = Console(file=io.StringIO(), width=120, highlight=False)
    terminal.show(target, results(result))
    return target.file.getvalue()
