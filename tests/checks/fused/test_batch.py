"""Batch invariance: noted where bits change with the batch, failed where a bound breaks."""

import torch

from gelu_verify.checks.fused import batch, rows
from gelu_verify.inputs.problems import Problem, parse
from gelu_verify.operators import fused
from gelu_verify.records import FindingStatus
from tests.cases import failures
from tests.checks.fused.contract_cases import fused_case, sound


def _activated(z, dtype):
    """In float64: torch's own in fp32 breaks the bound on some CPUs."""
    return torch.nn.functional.gelu(z.double()).to(dtype)


def in_order(x, weight, bias):
    """One sum after the other, in the order of K, whatever the batch."""
    z = bias.float().expand(x.shape[0], -1)
    for k in range(x.shape[1]):
        z = torch.addcmul(z, x[:, k : k + 1].float(), weight[:, k].float())
    return _activated(z, x.dtype)


def splits_from_33(x, weight, bias):
    """The sum in two halves for 33 rows or more."""
    if x.shape[0] < 33:
        return in_order(x, weight, bias)
    half = x.shape[1] // 2
    left = x[:, :half].float() @ weight[:, :half].float().t()
    right = x[:, half:].float() @ weight[:, half:].float().t()
    return _activated(left + right + bias.float(), x.dtype)


def wrong_from_128(x, weight, bias):
    y = sound(x, weight, bias)
    return torch.where(torch.arange(x.shape[0])[:, None] < 128, y, y + 1)


def test_batch_passes_when_every_row_gets_the_same_bits():
    outcome = batch.run(fused_case(in_order))
    (found,) = outcome.findings
    assert found.status is FindingStatus.PASSED
    assert found.message.endswith("batches of 1, 2, 17, 33, 128, 257 gets the same bits")
    rows_found = outcome.fields["batches"]
    assert [row.batch for row in rows_found] == [1, 2, 17, 33, 128, 257]
    assert [row.elements for row in rows_found] == [255, 510, 510, 510, 510, 510]
    assert all((row.differing, row.max_ulp) == (0, 0.0) for row in rows_found)


def test_difference_is_noted_with_its_size_when_a_batch_takes_another_route():
    outcome = batch.run(fused_case(splits_from_33, "fp32"))
    (found,) = outcome.findings
    assert found.status is FindingStatus.NOTED
    assert found.message.startswith("a row alone gets other bits than in a batch of 33: ")
    by_batch = {row.batch: row for row in outcome.fields["batches"]}
    assert [by_batch[n].differing for n in (1, 2, 17)] == [0, 0, 0]
    assert all(by_batch[n].differing > 100 for n in (33, 128, 257))
    assert all(by_batch[n].max_ulp >= 1 for n in (33, 128, 257))


def test_batch_fails_when_a_row_leaves_its_bound():
    (found, *_) = failures(batch.run(fused_case(wrong_from_128)))
    assert "rows 0 to 256 of m=257" in found.message
    assert "elements break their bound; worst at [" in found.message
    assert "--case m=257,k=255,n=255" in found.reproduce


def test_only_batches_that_a_case_has_run_when_it_is_given():
    outcome = batch.run(fused_case(in_order, cases=("m=20,k=3,n=5",)))
    assert [row.batch for row in outcome.fields["batches"]] == [1, 2, 17]


def test_refused_batches_are_noted():
    def kernel(x, weight, bias):
        if x.shape[0] == 17:
            raise ValueError("rows: got 17")
        return in_order(x, weight, bias)

    outcome = batch.run(fused_case(kernel))
    assert outcome.findings[0].message == "refused: 17 rows: ValueError: rows: got 17"
    assert 17 not in [row.batch for row in outcome.fields["batches"]]


def test_rows_are_found_by_their_shapes():
    operator = fused.get("linear_gelu")
    assert rows.axes(operator, parse("m=4,k=4,n=4", operator)) == ((0, None, None), 0)
    batched = Problem((("b", 2), ("m", 4), ("k", 4), ("n", 4)))
    assert rows.axes(operator, batched) == ((1, None, None), 1)
