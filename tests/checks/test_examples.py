"""Examples of Hypothesis: small, in the finding, the same for the same seed."""

import torch

from gelu_verify.checks import comparable, examples
from gelu_verify.formats import tensors
from gelu_verify.inputs import planned
from tests import faulty_kernels as kernels
from tests.cases import case, failures


def doubled_beyond_two(x):
    return torch.where((x > 2) & (x < 1e6), 2 * kernels.correct(x), kernels.correct(x))


def test_sound_kernel_has_no_failing_example():
    outcome = examples.run(case(kernels.correct, "fp32", examples=30))
    assert not outcome.findings
    assert outcome.fields["examples"].failed == ()
    assert outcome.fields["examples"].count == 30


def test_smallest_failing_example_is_one_input_with_its_command():
    outcome = examples.run(case(doubled_beyond_two, "fp32", examples=100, seed=3))
    (finding,) = failures(outcome)
    (point,) = outcome.fields["examples"].failed
    assert 2 < float(point.inputs["x"]) < 1e6
    assert finding.check == "accuracy"
    assert "an example of Hypothesis (seed 3) breaks cancelling" in finding.message
    assert finding.reproduce.endswith(f"--input {point.bits['x']}")


def test_examples_are_the_same_when_the_seed_is():
    drawn = [examples.run(case(doubled_beyond_two, "fp32", examples=60, seed=s)) for s in (5, 5)]
    assert drawn[0].fields == drawn[1].fields


def test_nothing_is_drawn_where_every_pattern_is_run():
    outcome = examples.run(case(doubled_beyond_two, "bf16", examples=50))
    assert not outcome.findings
    assert not outcome.fields


def test_nan_where_a_number_is_due_is_found():
    def nan_near_one(x):
        return torch.where((x > 0.5) & (x < 1.5), torch.nan, kernels.correct(x))

    outcome = examples.run(case(nan_near_one, "fp32", examples=100))
    assert "(nan_for_number)" in failures(outcome)[0].message


def test_population_is_kept_without_a_sample():
    one = case(kernels.correct, "bf16", comparable=True)
    kept = comparable.run(one).fields["comparable"]
    assert kept.sample is None
    assert kept.outputs.count == 65536
    # torch rounds float64 to bf16 through float32, at most once in 2^16 values another neighbour.
    assert abs(kept.outputs.unpacked()).max() <= 1
    assert (kept.outputs.unpacked() != 0).sum() < 30


def test_residuals_are_of_the_order_of_the_planned_sweep():
    """What a gate shows as the input of a changed result is that input."""

    def wrong_at_one(x):
        return torch.where(x == 1.0, 0.5, kernels.correct(x))

    before, now = (
        comparable.run(case(f, "fp16", comparable=True)).fields["comparable"].outputs.unpacked()
        for f in (kernels.correct, wrong_at_one)
    )
    ((index,),) = (before != now).nonzero()
    task = case(kernels.correct, "fp16").job
    inputs = planned.sweep_of(task).inputs[0]
    assert tensors.to_bits(inputs, case(kernels.correct, "fp16").subject.fmt)[index] == 0x3C00


def test_two_arguments_have_a_sample_beside_the_results():
    one = case(kernels.correct_backward, "fp16", operator="gelu_backward", comparable=True)
    kept = comparable.run(one).fields["comparable"]
    assert kept.outputs.count == 2 * 65536
    assert sum(d.count for d in kept.sample.regions.values()) > 10_000


def test_sign_and_payload_of_a_nan_are_no_change():
    def other_nan(x):
        bits = torch.where(torch.isnan(x), -1, kernels.correct(x).view(torch.int16).int())
        return bits.to(torch.int16).view(torch.bfloat16)

    kept = [
        comparable.run(case(f, "bf16", comparable=True)).fields["comparable"].outputs
        for f in (kernels.correct, other_nan)
    ]
    assert kept[0] == kept[1]
