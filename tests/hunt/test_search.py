"""The search finds faults it is not told of, and says no more than it knows."""

import math
from itertools import pairwise

import mpmath
import pytest

from gelu_verify import formats
from gelu_verify.hunt.records import HuntRequest, HuntStatus
from gelu_verify.hunt.run import hunt
from gelu_verify.hunt.search import strata
from gelu_verify.job import plan
from gelu_verify.measure.regions import Regions
from tests.hunt import kernels

FP64 = formats.get("fp64")


def _hunt(function, seconds=2.0, fmt="fp64", operator="gelu", seed=0, **options):
    name = f"tests.hunt.kernels:{function.__name__}"
    jobs = plan(name, operator=operator, format_names=(fmt,), seed=seed, **options)
    return hunt(HuntRequest(job=jobs[0], seconds=seconds), lambda _: None, function)


def _in_region(result, region):
    return next(found for found in result.found if found.region == region)


def test_total_loss_in_the_tail_is_found_when_torch_is_hunted():
    import torch

    job = plan("torch-erf", format_names=("fp64",))[0]
    result = hunt(HuntRequest(job=job, seconds=2.0), lambda _: None, torch.nn.functional.gelu)
    worst = result.found[0]
    assert result.status is HuntStatus.FINISHED
    assert worst.region == "deep_tail"
    assert worst.kind == "collapse"
    assert worst.relative_error == 1.0
    assert -38.6 < float(worst.point.inputs["x"]) < -8.2
    assert abs(worst.point.error_ulp) > 0.99 * 2**53
    # The exact value, from mpmath by another formula: x·(1 + erf(x/√2))/2 with 1000 digits.
    with mpmath.workdps(1000):
        x = mpmath.mpf(float(worst.point.inputs["x"]))
        expected = x * (1 + mpmath.erf(x / mpmath.sqrt(2))) / 2
        assert mpmath.mpf(worst.point.exact) == pytest.approx(expected, rel=1e-15)


def test_a_narrow_fault_is_climbed_when_it_grows_towards_one_point():
    found = _in_region(_hunt(kernels.bump, seconds=6.0), "positive")
    assert float(found.point.inputs["x"]) == pytest.approx(2.3456789, abs=4e-5)
    assert found.relative_error > 0.9e-9


@pytest.mark.parametrize("fmt", ["fp32", "bf16", "fp8_e5m2"])
def test_kernel_is_sound_in_every_region_when_it_is_computed_in_double(fmt):
    result = _hunt(kernels.sound, seconds=0.7, fmt=fmt)
    assert result.status is HuntStatus.FINISHED
    assert {found.region for found in result.found} >= {"centre", "positive", "shoulder"}
    assert all(abs(found.point.error_ulp) < 0.51 for found in result.found)
    assert sum(result.stages.values()) == result.measured


def test_nan_is_told_first_when_a_kernel_gives_one():
    worst = _hunt(kernels.nan_near_minus_two, seconds=0.7, fmt="fp32").found[0]
    assert (worst.region, worst.kind) == ("shoulder", "nan_for_number")
    assert worst.point.actual == "nan"
    assert math.isnan(worst.relative_error)
    assert -2.1 < float(worst.point.inputs["x"]) < -1.9


def test_infinity_is_sized_when_a_number_is_due():
    worst = _hunt(kernels.infinity_at_two, seconds=0.7, fmt="fp32").found[0]
    assert (worst.region, worst.kind) == ("positive", "infinity_for_finite")


def test_both_arguments_are_searched_when_the_backward_is_hunted():
    import torch

    job = plan("torch.ops.aten.gelu_backward", format_names=("fp32",))[0]
    function = torch.ops.aten.gelu_backward
    result = hunt(HuntRequest(job=job, seconds=1.0), lambda _: None, function)
    assert result.found[0].point.inputs.keys() == {"dy", "x"}
    # Around the zero of the derivative everything cancels.
    assert float(_in_region(result, "centre").point.inputs["x"]) == pytest.approx(-0.7518, abs=0.01)


def test_starts_are_equal_when_the_seed_is():
    first, second, other = (
        _hunt(kernels.sound, seconds=0.01, fmt="fp32", seed=seed) for seed in (1, 1, 2)
    )
    assert first.found == second.found
    assert first.found != other.found


def test_hunt_is_crashed_when_the_kernel_raises():
    result = _hunt(kernels.raises)
    assert result.status is HuntStatus.CRASHED
    assert "index out of range" in result.message
    assert result.exit_status == 1


def test_hunt_is_unavailable_when_the_kernel_declines_the_format():
    result = _hunt(kernels.no_doubles)
    assert result.status is HuntStatus.UNAVAILABLE
    assert result.exit_status == 3


@pytest.mark.parametrize("name", list(formats.FORMATS))
@pytest.mark.parametrize("derivative", [0, 1])
def test_strata_cover_the_line_when_they_are_joined(name, derivative):
    fmt = formats.get(name)
    parts = strata(Regions.of("erf", fmt, derivative), fmt)
    assert (parts[0].low, parts[-1].high) == (-fmt.largest_bits, fmt.largest_bits)
    assert all(one.high == two.low for one, two in pairwise(parts))
