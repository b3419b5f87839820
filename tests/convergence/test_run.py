"""Experiments on a task that trains in a tenth of a second."""

import dataclasses
import shutil

import pytest
import torch

from gelu_verify.convergence import run as experiments
from gelu_verify.convergence.experiment import ConvergenceInterrupted
from gelu_verify.convergence.records import Arm, Verdict
from gelu_verify.errors import UsageError
from gelu_verify.ledger import LedgerRefused
from reference_kernels import torch_eager, torch_fused, training_faults
from tests.convergence import kernels, tiny
from tests.convergence.experiments import facts, of


@pytest.fixture
def converge(tmp_path):
    def run(function, on_run=lambda *_: None, ledger=None, **asked):
        asked = of(function, ledger or tmp_path / "a.sqlite", **asked)
        return experiments.run(asked, on_run, function=function)

    return run


def test_torchs_gelu_is_equivalent(sound):
    found, _ = sound
    assert found.verdict is Verdict.EQUIVALENT
    assert {e.name for e in found.endpoints} == {
        "final loss", "loss area", "accuracy", "gradient error"
    }  # fmt: skip
    assert all(e.pairs == 3 and e.margin > 0 for e in found.endpoints)
    assert found.runs[0].losses[-1] < 0.95 * found.runs[0].losses[0]  # it learns
    assert len(found.runs) == found.trained == 5 * 3
    agreement = next(r.agreement for r in found.runs if r.arm is Arm.REFERENCE)
    assert agreement.examples == agreement.top1_agree == 200
    assert 0 < agreement.largest_logit_error < 1e-5
    shares = [sum(e.share for e in r.exposure) for r in found.runs if r.exposure]
    assert shares == pytest.approx([1.0] * 3)


def test_the_record_says_where_and_in_what_it_trained(sound):
    found, _ = sound
    assert (found.device, found.format, found.autocast) == ("cpu", "fp32", None)
    assert found.environment.libraries["torch"]
    assert "20 steps of 32" in found.recipe


def test_tanh_is_equivalent_when_it_is_declared(converge):
    found = converge(kernels.gelu_tanh, formula="tanh")
    assert found.verdict is Verdict.EQUIVALENT
    assert not found.gradients.relative_error > 1e-5


def test_tanh_is_told_apart_when_erf_is_declared(converge):
    found = converge(kernels.gelu_tanh)
    assert found.gradients.told_apart
    assert found.gradients.ratio > 100


def test_a_missing_term_of_the_gradient_is_different(converge):
    fault = training_faults.missing_term_backward
    found = converge(fault, operator="gelu_backward", seeds=(0, 1, 2, 3, 4))
    assert found.verdict is Verdict.DIFFERENT
    assert found.gradients.told_apart
    assert "beyond the margin" in found.reasons[0]


def test_a_loss_that_is_no_number_is_different(converge):
    found = converge(kernels.nan_backward, operator="gelu_backward")
    assert found.verdict is Verdict.DIFFERENT
    assert found.diverged[Arm.KERNEL] == 3
    assert sum(found.diverged.values()) == 3
    assert "diverged from 3 of 3 seeds" in found.reasons[0]
    run = next(r for r in found.runs if r.arm is Arm.KERNEL)
    assert run.first_nonfinite == 2  # the first step with weights that are no number
    text = found.model_dump_json()
    assert type(found).model_validate_json(text).model_dump_json() == text


def test_an_interrupted_run_goes_on_to_the_same_result(converge, sound):
    def stop(done, total, what):
        if done == 7:
            raise KeyboardInterrupt

    with pytest.raises(ConvergenceInterrupted, match="7 of 15 runs done"):
        converge(kernels.gelu, stop)
    resumed = converge(kernels.gelu)
    assert resumed.trained == 8
    assert facts(resumed) == facts(sound[0])


def test_more_seeds_train_only_what_is_new_and_another_kernel_is_refused(converge, sound, tmp_path):
    ledger = shutil.copy(sound[1], tmp_path / "copy.sqlite")
    assert converge(kernels.gelu, ledger=ledger, seeds=(0, 1, 2, 3)).trained == 5
    with pytest.raises(LedgerRefused):
        converge(kernels.gelu_tanh, ledger=ledger)


def test_a_kernel_without_gradient_needs_one(converge):
    with pytest.raises(UsageError, match="--backward"):
        converge(kernels.without_gradient)
    found = converge(kernels.without_gradient, backward=kernels.sound_backward)
    assert found.verdict is Verdict.EQUIVALENT
    assert found.backward == "tests.convergence.kernels:sound_backward"


def test_bf16_trains_under_autocast_with_a_larger_noise_floor(converge):
    narrow = converge(kernels.linear_gelu, operator="linear_gelu", fmt="bf16")
    assert narrow.verdict is Verdict.EQUIVALENT
    noise = next(d for d in narrow.drift if d.arm is Arm.NOISE and d.step == 0)
    assert narrow.autocast == "bf16"
    assert 1e-3 < noise.gradient_error < 0.2
    assert next(r for r in narrow.runs if r.arm is Arm.REFERENCE).agreement.rms_logit_error > 1e-4


def test_products_are_those_of_fp32_whatever_the_user_allows(converge):
    seen = []
    torch.set_float32_matmul_precision("medium")
    try:
        converge(kernels.raises, lambda *_: seen.append(torch.get_float32_matmul_precision()))
        assert set(seen) == {"highest"}
        assert torch.get_float32_matmul_precision() == "medium"
    finally:
        torch.set_float32_matmul_precision("highest")


def test_a_kernel_that_raises_ends_the_run_with_its_words(converge):
    found = converge(kernels.raises)
    assert found.verdict is Verdict.CRASHED
    assert found.reasons == ("the kernel failed: RuntimeError: no such size",)


@pytest.mark.parametrize("seeds", [(), (0, 1)])
def test_too_few_seeds_are_refused(converge, seeds):
    with pytest.raises(UsageError, match="seeds"):
        converge(kernels.gelu, seeds=seeds)


@pytest.mark.parametrize(
    ("task", "operator", "room", "other"),
    [
        ("TASK", "geglu", "gelu, gelu_backward, bias_gelu, linear_gelu", "digits-gated"),
        ("GATED", "linear_gelu", "gelu, gelu_backward, geglu", "digits-mlp"),
        ("CONV", "gelu", "conv_relu_pool", "digits-mlp"),
        ("NORM", "attention", "gelu, gelu_backward, layernorm_gelu", "digits-attention"),
    ],
)
def test_a_kernel_without_room_in_the_task_is_refused(converge, task, operator, room, other):
    with pytest.raises(UsageError) as refused:
        converge(kernels.gelu, operator=operator, task=task)
    name = getattr(tiny, task).name
    assert str(refused.value) == (
        f"task {name}: got a kernel of {operator}, expected {room}. Use --task {other}."
    )


def test_a_task_of_an_unknown_operator_is_refused(converge, monkeypatch):
    monkeypatch.setattr(tiny, "TASK", dataclasses.replace(tiny.TASK, operator="gegelu"))
    with pytest.raises(UsageError, match=r"operator of a task: got 'gegelu'.* mean geglu\?"):
        converge(kernels.gelu)


@pytest.mark.parametrize(
    ("task", "kernel"),
    [
        ("GATED", torch_eager.geglu),
        ("NORM", torch_fused.layernorm_gelu),
        ("ATTENTION", torch_fused.attention_fused),
        ("CONV", torch_fused.conv_relu_pool),
    ],
)
def test_torchs_own_of_each_operator_is_equivalent(converge, task, kernel):
    found = converge(kernel, task=task, operator=getattr(tiny, task).operator)
    assert found.verdict is Verdict.EQUIVALENT
    assert 0 < found.gradients.relative_error < 1e-5
    reference = next(r for r in found.runs if r.arm is Arm.REFERENCE)
    assert reference.losses[-1] < 0.97 * reference.losses[0]  # it learns
    assert reference.agreement.top1_agree == 200
    assert bool(reference.exposure) == bool(found.harmless) == (task == "GATED")


@pytest.mark.parametrize(
    ("task", "kernel"),
    [
        ("GATED", kernels.geglu_without_up),
        ("NORM", kernels.layernorm_of_fixed_mean),
        ("ATTENTION", kernels.attention_over_d),
        ("CONV", kernels.conv_with_a_shifted_gradient),
    ],
)
def test_a_fault_of_each_operator_is_different(converge, task, kernel):
    found = converge(kernel, task=task, operator=getattr(tiny, task).operator, seeds=range(5))
    assert found.verdict is Verdict.DIFFERENT
    assert found.gradients.told_apart
    assert "beyond the margin" in found.reasons[0]


def test_an_activation_stands_in_the_layers_of_a_wider_operator(converge):
    assert converge(kernels.gelu, task="NORM").verdict is Verdict.EQUIVALENT


@pytest.mark.parametrize("task", ["NORM", "CONV"])
def test_fused_operators_train_under_autocast(converge, task):
    own = getattr(tiny, task).operator
    found = converge(getattr(torch_fused, own), task=task, operator=own, fmt="bf16")
    assert found.verdict is not Verdict.DIFFERENT
    assert 1e-4 < found.gradients.relative_error < 0.2
