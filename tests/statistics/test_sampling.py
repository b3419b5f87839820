"""Samples: what is drawn, by which law, and what is kept of it."""

import numpy as np
import pytest
import torch

from gelu_verify import formats, operators
from gelu_verify.formats import tensors
from gelu_verify.kernels.subject import Subject
from gelu_verify.measure.regions import REGIONS, Region, Regions
from gelu_verify.statistics import sampling
from gelu_verify.statistics.comparison import compare, holm
from tests.strategies import SHORT


def subject(function: object, operator: str = "gelu", fmt: str = "fp32") -> Subject:
    return Subject(
        "kernel", "erf", formats.get(fmt), torch.device("cpu"), function, operators.get(operator)
    )


def right_everywhere(x: torch.Tensor) -> torch.Tensor:
    """GELU in float64, rounded once."""
    return torch.nn.functional.gelu(x.double()).to(x.dtype)


@pytest.mark.parametrize("fmt", [formats.get(name) for name in SHORT], ids=lambda f: f.name)
@pytest.mark.parametrize("derivative", [0, 1])
def test_ranges_hold_every_finite_float_of_a_region_once(
    fmt: formats.Format, derivative: int
) -> None:
    regions = Regions.of("erf", fmt, derivative)
    every = torch.arange(-fmt.largest_bits, fmt.largest_bits + 1)
    codes = regions.codes(tensors.from_ordinals(every, fmt).double())
    found = sampling._ranges(regions, fmt)
    for code, region in enumerate(REGIONS):
        members = every[codes == code].tolist()
        inside = [n for low, high in found.get(region, ()) for n in range(low, high + 1)]
        assert sorted(inside) == members


def test_ranges_of_long_formats_end_where_the_region_does() -> None:
    for name in ("fp32", "fp64"):
        fmt = formats.get(name)
        regions = Regions.of("erf", fmt, 0)
        found = sampling._ranges(regions, fmt)
        assert set(found) == set(Region)
        ends = torch.tensor([end for parts in found.values() for pair in parts for end in pair])
        owners = [REGIONS.index(r) for r, parts in found.items() for _ in range(2 * len(parts))]
        assert regions.codes(tensors.from_ordinals(ends, fmt).double()).tolist() == owners
        count = sum(high - low + 1 for parts in found.values() for low, high in parts)
        assert count == 2 * fmt.largest_bits + 1  # both zeros share an ordinal


def test_every_float_of_a_region_is_as_likely_as_any_other() -> None:
    fmt = formats.get("fp8_e4m3fn")
    drawn = sampling.draw(operators.get("gelu"), "erf", fmt, 60_000, np.random.default_rng(1))
    for (x,) in drawn.values():
        counts = np.unique(tensors.to_bits(x, fmt).numpy(), return_counts=True)[1]
        expected = 60_000 / counts.size
        chi_square = float(((counts - expected) ** 2 / expected).sum())
        assert chi_square <= counts.size + 5 * (2 * counts.size) ** 0.5


@pytest.mark.parametrize("name", list(operators.OPERATORS))
def test_inputs_are_in_the_region_they_were_drawn_for(name: str) -> None:
    operator, fmt = operators.get(name), formats.get("bf16")
    regions = Regions.of("erf", fmt, operator.derivative)
    drawn = sampling.draw(operator, "erf", fmt, 500, np.random.default_rng(2))
    for region, inputs in drawn.items():
        assert [part.numel() for part in inputs] == [500] * len(operator.arguments)
        codes = regions.codes(operator.activated(inputs))
        assert (codes == REGIONS.index(region)).all()
        assert all(torch.isfinite(part).all() for part in inputs)


def test_one_seed_draws_the_same_inputs_and_another_others() -> None:
    samples = [sampling.measure_sample(subject(right_everywhere), seed, 50) for seed in (4, 4, 5)]
    assert samples[0] == samples[1]
    assert samples[0].inputs_digest != samples[2].inputs_digest


def test_a_correctly_rounded_kernel_has_the_errors_of_rounding() -> None:
    found = sampling.measure_sample(subject(right_everywhere), seed=0)
    for name in ("shoulder", "positive"):
        region = found.regions[name]
        assert region.count == sampling.PER_REGION
        assert region.beyond(0.5) == 0
        # uniform in ±1/2: mean 0 ± 5/√(12·4096), mean size 1/4
        assert abs(region.mean()) < 5 / (12 * 4096) ** 0.5
        assert region.mean_absolute() == pytest.approx(0.25, abs=0.012)


def test_a_kernel_that_loses_results_has_wrong_ones_and_not_fewer() -> None:
    def lossy(x: torch.Tensor) -> torch.Tensor:
        return torch.where(x < -3.0, torch.nan, right_everywhere(x))

    tail = sampling.measure_sample(subject(lossy), 0, 64).regions["tail"]
    assert (tail.count, tail.undefined) == (0, 64)


def test_results_that_overflow_as_they_must_are_no_errors() -> None:
    def product(gate: torch.Tensor, up: torch.Tensor) -> torch.Tensor:
        return (torch.nn.functional.gelu(gate.double()) * up.double()).to(gate.dtype)

    found = sampling.measure_sample(subject(product, "geglu", "fp16"), 0, 512)
    assert all(region.undefined == 0 for region in found.regions.values())
    assert found.regions["saturated"].count < 512


def test_one_step_up_is_seen_at_other_inputs_and_at_the_same() -> None:
    def biased(x: torch.Tensor) -> torch.Tensor:
        y = right_everywhere(x)
        return torch.where((x > 1.0) & (x < 5.0), torch.nextafter(y, y + 1), y)

    before = sampling.measure_sample(subject(right_everywhere), 0)
    for seed in (0, 1):
        now = sampling.measure_sample(subject(biased), seed)
        decided = holm(compare(before, now))
        assert {c.region for c in decided if c.change == "worse"} == {"positive"}
    assert before.outputs_digest != now.outputs_digest
