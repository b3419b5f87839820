"""What cannot show a fault is no evidence: a job of nothing else fails, others say how much."""

from __future__ import annotations

import pytest
import torch
from torch.nn import functional

from gelu_verify.checks.fused import bound
from gelu_verify.kernels.subject import KernelFailure
from gelu_verify.records import FindingStatus
from tests.cases import failures, messages
from tests.checks.fused.listed_cases import fused_case


def sound(x, weight, bias):
    sums = functional.linear(x.double(), weight.double(), bias.double())
    return functional.gelu(sums).to(x.dtype)


def relu(x, weight, bias):
    return functional.relu(functional.linear(x.double(), weight.double(), bias.double())).to(
        x.dtype
    )


def informative(text, name="bf16", function=sound):
    (found,) = bound.run(fused_case(function, name=name, texts=[text])).fields["bound"].by_case
    return found.informative, found.elements


#: One row of the amplitude ladder, at amplitudes that saturate or vanish.
@pytest.mark.parametrize(
    "text",
    [
        "m=1,k=64,n=64,values=ladder,seed=4",
        "m=1,k=64,n=64,values=ladder,seed=6",
    ],
)
def test_job_fails_when_no_element_could_tell_a_fault(text):
    outcome = bound.run(fused_case(sound, texts=[text]))
    (failure,) = failures(outcome)
    assert "no evidence" in failure.message or "no case gives" in failure.message


def test_saturated_elements_are_no_evidence_of_the_activation():
    # f(s) = s within the bound from some 3 on, and 0 below -14 or so: ReLU does as well.
    text = "m=1,k=64,n=64,values=ladder,seed=4"
    assert informative(text) == (0, 64)
    assert "break" not in messages(bound.run(fused_case(relu, texts=[text])))


def test_elements_where_the_formula_shows_are_evidence():
    found, elements = informative("m=17,k=33,n=21")
    assert elements == 357
    assert 0.3 * elements < found < elements
    assert informative("m=17,k=33,n=21", "fp32")[0] > found


def test_other_formula_breaks_every_element_that_is_evidence():
    def sigmoid(x, weight, bias):
        sums = functional.linear(x.double(), weight.double(), bias.double())
        return (sums * torch.sigmoid(1.702 * sums)).to(x.dtype)

    outcome = bound.run(fused_case(sigmoid, name="fp32", texts=["m=17,k=33,n=21"]))
    (found,) = outcome.fields["bound"].by_case
    assert found.broken >= 0.99 * found.informative > 0


def test_cases_without_evidence_must_hold_and_are_counted():
    texts = ["m=17,k=33,n=21", "m=0,k=4,n=5", "m=1,k=64,n=64,values=ladder,seed=4"]
    outcome = bound.run(fused_case(sound, texts=texts))
    assert not failures(outcome)
    assert "2 of the cases are no evidence" in messages(outcome)

    def wrong_where_saturated(x, weight, bias):
        result = sound(x, weight, bias)
        return torch.where(result > 1000, result * 1.1, result)

    outcome = bound.run(fused_case(wrong_where_saturated, texts=texts))
    assert [failure.input for failure in failures(outcome)] == [f"case {texts[-1]}"]


def test_zero_weight_is_evidence_of_bias_and_activation():
    assert informative("m=3,k=4,n=64,values=zero_weight")[0] > 50
    ignored = bound.run(
        fused_case(lambda x, w, b: sound(x, w, 0 * b), texts=["m=3,k=4,n=64,values=zero_weight"])
    )
    assert failures(ignored)


@pytest.mark.parametrize("text", ["m=0,k=4,n=5", "m=4,k=4,n=0", "m=0,k=0,n=0"])
def test_empty_result_is_no_evidence_but_has_a_shape(text):
    (failure,) = failures(bound.run(fused_case(sound, texts=[text])))
    assert "no case gives an element that can be judged" in failure.message


def test_empty_sum_is_the_function_of_the_bias():
    outcome = bound.run(fused_case(sound, texts=["m=3,k=0,n=40,values=distinct"]))
    assert not failures(outcome)
    wrong = fused_case(lambda x, w, b: sound(x, w, b) * 0, texts=["m=3,k=0,n=40,values=distinct"])
    assert failures(bound.run(wrong))


def test_refusals_are_told_once_a_reason_and_are_not_run_again():
    def contiguous_only(x, weight, bias):
        if not x.is_contiguous():
            raise ValueError("x must be contiguous")
        return sound(x, weight, bias)

    texts = ["m=17,k=33,n=21", "m=3,k=4,n=5,layout=sliced", "m=3,k=4,n=5,layout=strided"]
    case = fused_case(contiguous_only, texts=texts)
    noted = [f for f in bound.run(case).findings if f.status is FindingStatus.NOTED]
    assert [f.message for f in noted] == ["refused 2 of 3 cases: ValueError: x must be contiguous"]
    assert [str(problem) for problem in case.accepted] == texts[:1]
    with pytest.raises(KernelFailure):
        bound.run(fused_case(contiguous_only, texts=texts[1:2]))
