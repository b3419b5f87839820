"""Long attention: chosen rows show a lost key or row; what a kernel cannot take is foreseen."""

import pytest
import torch
from torch.nn import functional

from gelu_verify.checks.fused import bound, gradient, large, long_rows
from gelu_verify.inputs.problems import ladder, parse
from gelu_verify.records import FindingStatus
from reference_kernels.torch_fused import attention
from tests.cases import failures, messages
from tests.checks.fused.listed_cases import fused_case

sdpa = functional.scaled_dot_product_attention


def _case(function, name="bf16", texts=()):
    return fused_case(function, "attention", name, texts)


def _lengths(monkeypatch, *lengths):
    monkeypatch.setattr(large, "_LENGTHS", lengths)


def _loses_the_last_key(q, k, v):
    return sdpa(q, k[..., : max(k.shape[-2] - 1, 1), :], v[..., : max(v.shape[-2] - 1, 1), :])


def _wraps_rows(q, k, v):
    return sdpa(q, k, v).index_select(-2, torch.arange(q.shape[-2]) % 4096)


def test_large_holds_a_length_once_when_the_kernel_is_sound(monkeypatch):
    _lengths(monkeypatch, 5001)
    outcome = large.run(_case(sdpa))
    assert messages(outcome) == (
        "passed: one dimension of 5,001: within the bound (4 cases)\n"
        "skipped: more than 2^31 elements: only on a CUDA device"
    )


@pytest.mark.parametrize("kernel", [_loses_the_last_key, _wraps_rows])
def test_fault_is_named_when_a_long_row_is_wrong(monkeypatch, kernel):
    _lengths(monkeypatch, 5001)
    found = failures(large.run(_case(kernel)))
    assert any(f.message.startswith("l of ") for f in found)
    assert any("l=" in f.reproduce and "values=few_keys" in f.reproduce for f in found)


def test_lengths_are_noted_when_the_kernel_keeps_all_scores(monkeypatch):
    _lengths(monkeypatch, 2**15 + 1)
    noted = [
        f for f in large.run(_case(attention, "fp32")).findings if f.status is FindingStatus.NOTED
    ]
    (found,) = noted
    assert found.message.startswith("not tried: l of 32,769 would ")
    assert found.message.endswith("; l of 4,097 is judged")


def test_memory_grows_with_the_square_when_a_kernel_keeps_all_scores():
    # Large enough that malloc maps each array of its own and gives it back.
    problem = ladder.long_squared(_case(attention).operator, 4097)
    scores = 4097**2 * 4
    kept = long_rows.cost(_case(attention, "fp32"), problem)
    streamed = long_rows.cost(_case(sdpa, "fp32"), problem)
    if kept.bytes is None:
        pytest.skip("the memory of a call is read from /proc of Linux")
    assert 1.5 * scores < kept.bytes < 3.5 * scores
    assert streamed.bytes < 0.5 * scores


@pytest.mark.parametrize(
    ("cost", "said"),
    [
        (long_rows.Cost(1000, 0.01, 2**20), ""),
        (long_rows.Cost(1000, 1.0, 2**20), "would take about 100 s"),
        (long_rows.Cost(1000, 0.01, 2**25), "would need about 3.1 GiB"),
        (long_rows.Cost(1000, 0.01, None), "the memory of a call cannot be measured here"),
    ],
)
def test_hindrance_says_why_when_a_longer_call_takes_too_much(cost, said):
    assert cost.hindrance(10_000, torch.device("cpu")) == said


def test_a_long_case_is_judged_by_its_rows_when_it_is_asked_for():
    text = "b=1,h=1,l=4100,d=16,values=few_keys"
    assert str(parse(text, _case(sdpa).operator)) == text
    (passed,) = bound.run(_case(sdpa, texts=[text])).findings
    assert passed.status is FindingStatus.PASSED
    (failed,) = bound.run(_case(_loses_the_last_key, texts=[text])).findings
    assert failed.status is FindingStatus.FAILED
    (skipped,) = gradient.run(_case(sdpa, texts=[text])).findings
    assert skipped.status is FindingStatus.SKIPPED
