"""Saturation: the kernel's own thresholds, to the last bit, and what they cost.

The literal costs are from mpmath at 100 bits: 6.03125·Φ(-6.03125) and so on.
"""

import pytest
import torch

from gelu_verify.checks import saturation
from gelu_verify.records import FindingStatus
from tests import faulty_kernels as kernels
from tests.cases import backward, case


def _record(kernel, name, **options):
    outcome = saturation.run(case(kernel, name, **options))
    assert [f.status for f in outcome.findings] == [FindingStatus.NOTED]
    return outcome.fields["saturation"]


def test_guard_is_found_exactly_when_bf16_is_exhaustive():
    found = _record(kernels.guarded, "bf16")
    assert found.zero_from == -6.03125
    assert found.zero_needed_from == -13.5625
    assert found.zero_cost_absolute == pytest.approx(4.9063092940912332e-9, rel=1e-12)
    assert found.identity_from == 2.78125
    assert found.identity_cost_ulp <= 0.5
    assert "0 from -6.03125 down (bf16 needs -13.5625): loses" in found.sentence
    assert found.sentence.endswith("x from 2.78125 up (needs 2.78125): free")


def test_guard_is_refined_to_the_last_bit_when_fp32_is_sampled():
    found = _record(kernels.guarded, "fp32")
    # The largest fp32 number below -6: a step is 2^-21 there.
    assert found.zero_from == -6 - 2.0**-21
    assert found.zero_cost_absolute == pytest.approx(5.9195e-9, rel=1e-4)
    assert found.identity_needed_from == 5.3475155830383301
    assert found.identity_from == 5.3475155830383301


@pytest.mark.parametrize("threshold", [-7.3, -9.87654321])
def test_any_threshold_is_found_when_it_lies_between_samples(threshold):
    def kernel(x):
        return torch.where(x <= threshold, 0.0, kernels.correct(x))

    found = _record(kernel, "fp32")
    below = torch.tensor(threshold, dtype=torch.float64).float()
    if below.double() > threshold:
        below = torch.nextafter(below, torch.tensor(-torch.inf))
    # A float32 tensor is compared with the threshold rounded to float32.
    rounded = torch.tensor(threshold)
    assert found.zero_from in (float(below), float(rounded))


def test_cost_of_both_sides_is_told_when_the_guard_is_too_early():
    found = _record(kernels.guard_cuts_at_two, "bf16")
    assert found.zero_from == -2.015625
    assert found.identity_from == 2.015625
    assert found.identity_cost_ulp == pytest.approx(5.6552572580467260, rel=1e-12)
    assert "costs" in found.sentence


def test_guard_costs_nothing_when_a_kernel_has_none():
    found = _record(kernels.correct, "fp32")
    assert found.zero_from == found.zero_needed_from
    assert found.zero_cost_ulp <= 0.5
    assert found.zero_from == pytest.approx(-14.356069, abs=1e-6)


def test_cancellation_looks_like_a_guard_when_erf_becomes_one():
    found = _record(kernels.textbook, "fp32")
    assert -5.6 < found.zero_from < -5.3  # 1 + erf is 0 in fp32 from about -5.42 or -5.54 on
    assert "loses" in found.sentence


def test_sentence_says_so_when_nothing_saturates():
    found = _record(lambda x: kernels.correct(x) * 0.5 - 1e-3, "bf16")
    assert found.zero_from is None
    assert found.identity_from is None
    assert found.sentence == "never returns 0 on the far left; never returns x on the far right"


def test_thresholds_are_those_of_the_derivative_when_the_operator_is_backward():
    for direct in (True, False):
        if direct:
            result = backward(kernels.derivative_one_too_early, "bf16")
        else:
            kernel = kernels.differentiable(kernels.derivative_one_too_early)
            result = backward(kernel, "bf16", via="autograd")
        found = saturation.run(result).fields["saturation"]
        assert found.identity_from == 2.015625
        # f' rounds to 0 in bf16 below -13.753458: the next number is -13.8125.
        assert found.zero_from == -13.8125
        assert "dy from 2.015625 up" in found.sentence
