"""Regions at their borders, as design.md section 3 defines them."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given

from gelu_verify.formats import FORMATS
from gelu_verify.measure.regions import REGIONS, Region, Regions
from tests import strategies

FP32, BF16 = FORMATS["fp32"], FORMATS["bf16"]
R = Region


def names(regions: Regions, *x: float) -> list[str]:
    return [REGIONS[code].value for code in regions.codes(torch.tensor(x, dtype=torch.float64))]


def up(x: float) -> float:
    return math.nextafter(x, math.inf)


def down(x: float) -> float:
    return math.nextafter(x, -math.inf)


@pytest.mark.parametrize(
    ("x", "expected"),
    [
        (-math.inf, R.ZERO),
        (-1e30, R.ZERO),
        (-14.4, R.ZERO),
        # The exact crossing is -14.356068..., between two neighbours of fp32.
        (-14.3560695648193359375, R.ZERO),
        (-14.356067, R.DEEP_TAIL),
        (-6.0, R.DEEP_TAIL),
        (down(-5.54), R.DEEP_TAIL),
        (-5.54, R.TAIL),
        (-4.0, R.TAIL),
        (down(-3.0), R.TAIL),
        (-3.0, R.SHOULDER),
        (-2.0, R.SHOULDER),
        (down(-1.0), R.SHOULDER),
        (-1.0, R.CENTRE),
        (-0.5, R.CENTRE),
        (-(2.0**-12), R.CENTRE),
        (up(-(2.0**-12)), R.TINY),
        (-0.0, R.TINY),
        (0.0, R.TINY),
        (5e-324, R.TINY),
        (down(2.0**-12), R.TINY),
        (2.0**-12, R.CENTRE),
        (1.0, R.CENTRE),
        (up(1.0), R.POSITIVE),
        (5.3475, R.POSITIVE),
        (5.34752, R.SATURATED),
        (1e38, R.SATURATED),
        (math.inf, R.SATURATED),
    ],
)
def test_region_of_a_point_of_fp32(x: float, expected: Region) -> None:
    assert names(Regions.of("erf", FP32, 0), x) == [expected.value]


@pytest.mark.parametrize(
    ("name", "derivative", "zero", "identity"),
    [
        ("bf16", 0, -13.561520, 2.78125),
        ("fp16", 0, -5.723855, 3.447265625),
        ("fp64", 0, -38.580140, 8.2126862),
        ("bf16", 1, -13.753458, 3.39547),
        ("fp16", 1, -6.029807, 4.00832),
        ("fp32", 1, -14.541349, 5.91016),
        ("fp64", 1, -38.674767, 8.71433),
    ],
)
def test_outer_borders_are_those_published(
    name: str, derivative: int, zero: float, identity: float
) -> None:
    regions = Regions.of("erf", FORMATS[name], derivative)
    left = names(regions, zero - 0.06, zero + 1e-5)
    right = names(regions, identity - 0.02, identity + 0.02)
    assert left == ["zero", "deep_tail"]
    assert right == ["positive", "saturated"]


@pytest.mark.parametrize("name", strategies.ALL)
@pytest.mark.parametrize("formula", ["erf", "tanh", "sigmoid"])
@pytest.mark.parametrize("derivative", [0, 1])
def test_thresholds_themselves_belong_to_the_outer_regions(
    name: str, formula: str, derivative: int
) -> None:
    fmt = FORMATS[name]
    regions = Regions.of(formula, fmt, derivative)
    zero, identity = regions.zero_threshold, regions.identity_threshold
    assert names(regions, zero, fmt.neighbour(zero, -1)) == ["zero", "zero"]
    assert names(regions, fmt.neighbour(zero, 1)) != ["zero"]
    if identity > 1.0:
        assert names(regions, identity, fmt.largest) == ["saturated", "saturated"]
        assert names(regions, fmt.neighbour(identity, -1)) in (["positive"], ["centre"])
    assert list(regions.borders()) == sorted(regions.borders())


def test_regions_of_fp8_when_thresholds_lie_within_the_tail() -> None:
    # e4m3fn: GELU(-3.5) = -8.1e-4 is below half of 2^-9, GELU(-3.25) = -1.9e-3 is not.
    regions = Regions.of("erf", FORMATS["fp8_e4m3fn"], 0)
    assert names(regions, -448.0, -5.5, -3.5, -3.25, -3.0, -1.0, 0.0, 1.0, 1.125, 1.875) == [
        *("zero", "zero", "zero", "tail", "shoulder"),
        *("centre", "tiny", "centre", "positive", "saturated"),
    ]


def test_centre_keeps_its_points_when_the_derivative_is_one_before_them() -> None:
    # sigmoid: the derivative rounds to 1 in e5m2 from 0.625 on.
    regions = Regions.of("sigmoid", FORMATS["fp8_e5m2"], 1)
    assert regions.identity_threshold == 0.625
    assert names(regions, 0.625, 0.875, 1.0, 1.25) == ["centre"] * 3 + ["saturated"]


@given(x=strategies.finite_values(FP32))
def test_every_point_is_in_the_region_that_the_definition_names(x: float) -> None:
    if abs(x) < 2.0**-12:
        expected = R.TINY
    elif x <= -14.356068:
        expected = R.ZERO
    elif x < -5.54:
        expected = R.DEEP_TAIL
    elif x < -3:
        expected = R.TAIL
    elif x < -1:
        expected = R.SHOULDER
    elif x <= 1:
        expected = R.CENTRE
    else:
        expected = R.POSITIVE if x < 5.3475156 else R.SATURATED
    if not (-14.3561 < x < -14.3560 or 5.3475 < x < 5.3476):
        assert names(Regions.of("erf", FP32, 0), x) == [expected.value]


def test_every_point_of_bf16_is_in_exactly_one_region() -> None:
    x = (
        torch.arange(-(2**15), 2**15, dtype=torch.int32)
        .to(torch.int16)
        .view(torch.bfloat16)
        .double()
    )
    x = x[torch.isfinite(x)]
    codes = Regions.of("erf", BF16, 0).codes(x)
    counts = torch.bincount(codes, minlength=len(REGIONS))
    assert int(counts.sum()) == BF16.finite_count
    assert int((counts > 0).sum()) == len(REGIONS)
