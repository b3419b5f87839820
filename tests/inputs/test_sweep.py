"""Sweeps: what is covered is proven by counting, against the definitions of the formats."""

from __future__ import annotations

import math
from functools import cache

import numpy as np
import pytest
import torch

from gelu_verify.errors import EmptySampleError
from gelu_verify.formats import FORMATS, tensors
from gelu_verify.inputs import sweep
from gelu_verify.inputs.sweep import Depth, Sweep, build
from gelu_verify.reference.thresholds import thresholds
from tests import strategies

FP32, BF16 = FORMATS["fp32"], FORMATS["bf16"]
STRATIFIED = [("fp32", Depth.QUICK), ("fp32", Depth.STANDARD), ("fp64", Depth.QUICK)]
STRATIFIED += [("fp64", Depth.STANDARD)]
#: exponent of the smallest subnormal and of the largest binade.
BINADES = {"fp32": (-149, 127), "fp64": (-1074, 1023)}
NUMPY = {"fp32": np.float32, "fp64": np.float64}


@cache
def forward(name: str, depth: Depth, seed: int = 0) -> Sweep:
    return build(FORMATS[name], ("x",), depth, seed)


@cache
def backward(name: str, depth: Depth = Depth.QUICK) -> Sweep:
    return build(FORMATS[name], ("dy", "x"), depth)


@pytest.mark.parametrize("name", strategies.SHORT)
def test_short_formats_are_swept_exhaustively_each_pattern_once(name: str) -> None:
    fmt = FORMATS[name]
    for depth in Depth:
        made = build(fmt, ("x",), depth)
        assert made.exhaustive
        assert made.name == "exhaustive"
        patterns = tensors.to_bits(made.x, fmt)
        assert torch.equal(patterns.sort().values, torch.arange(2**fmt.bits))
        wide = made.x.double()
        nan, infinite = int(wide.isnan().sum()), int(wide.isinf().sum())
        assert nan == fmt.nan_count
        assert infinite == (2 if fmt.infinities else 0)
        assert int(wide.isfinite().sum()) == fmt.finite_count
        assert nan + infinite + fmt.finite_count == 2**fmt.bits


@pytest.mark.parametrize(
    ("name", "depth"), [*((name, Depth.QUICK) for name in strategies.SHORT), *STRATIFIED]
)
def test_points_ascend_after_the_nans_with_minus_zero_first(name: str, depth: Depth) -> None:
    wide = forward(name, depth).x.double()
    nans = int(wide.isnan().sum())
    assert bool(wide[:nans].isnan().all())
    rest = wide[nans:]
    steps = rest.diff()
    assert int((steps == 0).sum()) == 1, "only -0 and +0 are equal"
    assert bool((steps[rest.isfinite()[1:] & rest.isfinite()[:-1]] >= 0).all())
    zeros = (rest == 0).nonzero().flatten().tolist()
    assert [math.copysign(1.0, float(rest[i])) for i in zeros] == [-1.0, 1.0]
    if FORMATS[name].infinities:
        assert (float(rest[0]), float(rest[-1])) == (-math.inf, math.inf)


@pytest.mark.parametrize(("name", "depth"), STRATIFIED)
def test_no_pattern_comes_twice_when_stratified(name: str, depth: Depth) -> None:
    made = forward(name, depth)
    patterns = tensors.to_bits(made.x, FORMATS[name])
    assert patterns.unique().numel() == patterns.numel()
    assert not made.exhaustive
    assert made.name == depth.value


@pytest.mark.parametrize("name", ["fp32", "fp64"])
def test_sweep_does_not_claim_to_be_exhaustive_when_it_is_stratified(name: str) -> None:
    made = forward(name, Depth.EXHAUSTIVE)
    assert made.x.numel() < 2**20
    assert not made.exhaustive
    assert made.name == "standard"
    assert made.digest == forward(name, Depth.STANDARD).digest


@pytest.mark.parametrize(("name", "depth"), STRATIFIED)
def test_every_binade_of_both_signs_has_points(name: str, depth: Depth) -> None:
    lowest, highest = BINADES[name]
    wide = forward(name, depth).x.double()
    for side in (wide[wide > 0], -wide[wide < 0]):
        finite = side[side.isfinite()]
        _, exponent = torch.frexp(finite)
        assert set((exponent - 1).tolist()) == set(range(lowest, highest + 1))


@pytest.mark.parametrize(("name", "depth"), STRATIFIED)
def test_thresholds_and_their_neighbours_are_points(name: str, depth: Depth) -> None:
    fmt = FORMATS[name]
    present = set(forward(name, depth).x.double().tolist())
    marks = [t for f in ("erf", "tanh", "sigmoid") for d in (0, 1) for t in thresholds(f, fmt, d)]
    # Guards, cut-offs and zeros of the derivative, as real numbers.
    marks += [6.0, -6.0, 8.48528137423857, -8.48528137423857, -5.54, -3.0, -1.0, 1.0]
    marks += [1.4142135623730951, -1.4142135623730951, -0.75179152469356446, -0.75246142207101626]
    for mark in marks:
        value = NUMPY[name](mark)
        for point in (
            value,
            np.nextafter(value, NUMPY[name](99)),
            np.nextafter(value, -value * 99),
        ):
            assert float(point) in present, mark


@pytest.mark.parametrize(("name", "depth"), STRATIFIED)
def test_special_values_are_points(name: str, depth: Depth) -> None:
    fmt = FORMATS[name]
    patterns = set(tensors.to_bits(forward(name, depth).x, fmt).tolist())
    quantum, normal, largest, infinity = {
        "fp32": (1, 0x00800000, 0x7F7FFFFF, 0x7F800000),
        "fp64": (1, 0x0010 << 48, (0x7FF << 52) - 1, 0x7FF << 52),
    }[name]
    sign = -(2**63) if name == "fp64" else 2**31
    quiet = infinity | 1 << (fmt.precision - 2)
    for magnitude in (0, quantum, normal - 1, normal, largest, infinity, infinity + 1, quiet):
        assert {magnitude, magnitude | sign} <= patterns, hex(magnitude)


def test_left_tail_is_dense_when_stratified() -> None:
    wide = forward("fp32", Depth.QUICK).x.double()
    tail = wide[(wide > -14.5) & (wide < -3)]
    assert tail.numel() > 15_000
    assert float(tail.diff().max()) < 0.001


@pytest.mark.parametrize("name", ["fp32", "fp64", "bf16"])
def test_sweep_is_the_same_when_the_seed_is(name: str) -> None:
    fmt = FORMATS[name]
    one, again = (build(fmt, ("dy", "x"), Depth.QUICK, 3) for _ in range(2))
    other = build(fmt, ("dy", "x"), Depth.QUICK, 4)
    assert one.digest == again.digest
    assert one.seed == 3
    assert len(one.digest) == 16
    for a, b in zip(one.inputs, again.inputs, strict=True):
        assert torch.equal(tensors.to_bits(a, fmt), tensors.to_bits(b, fmt))
    assert one.digest != other.digest


def test_digest_changes_when_any_input_does() -> None:
    base = sweep.replay(FP32, ((0x3F800000, 0x40000000),))
    seen = {base.digest}
    for patterns in [(0x3F800001, 0x40000000), (0x3F800000, 0x40000001), (0xBF800000, 0x40000000)]:
        seen.add(sweep.replay(FP32, (patterns,)).digest)
    seen.add(sweep.replay(FP32, ((0x40000000, 0x3F800000),)).digest)
    assert len(seen) == 5


def test_digest_does_not_depend_on_the_random_state_of_torch() -> None:
    torch.manual_seed(1)
    first = build(FP32, ("x",), Depth.QUICK).digest
    torch.manual_seed(2)
    assert build(FP32, ("x",), Depth.QUICK).digest == first


@pytest.mark.parametrize("name", strategies.ALL)
def test_every_x_is_taken_twice_when_there_is_a_dy(name: str) -> None:
    fmt = FORMATS[name]
    dy, x = backward(name).inputs
    single = forward(name, Depth.QUICK).x
    bits = tensors.to_bits(single, fmt)
    assert torch.equal(tensors.to_bits(x, fmt), bits.repeat_interleave(2))
    assert dy.dtype is x.dtype
    assert dy.shape == x.shape
    assert bool((dy.double()[::2] == 1.0).all())


@pytest.mark.parametrize("name", strategies.ALL)
def test_dy_takes_its_extremes_with_both_signs_on_both_sides(name: str) -> None:
    fmt = FORMATS[name]
    dy, x = (part.double() for part in backward(name).inputs)
    assert bool(dy.isfinite().all())
    assert bool((dy != 0).all())
    for side in (x[x.isfinite()] < 0, x[x.isfinite()] > 0):
        seen = set(dy[x.isfinite()][side].tolist())
        for extreme in (fmt.largest, fmt.smallest_subnormal):
            assert {extreme, -extreme} <= seen, "at a finite x, where it shows something"
        assert min(seen) < 0 < max(seen)


def test_dy_spans_many_binades() -> None:
    dy = backward("fp32").inputs[0].double().abs()
    _, exponent = torch.frexp(dy)
    assert exponent.unique().numel() > 200


def test_replay_fills_whole_vectors_with_the_given_inputs() -> None:
    made = sweep.replay(FP32, ((0x3F800000, 0xC0000000), (0x7FC00001, 0x80000000)), 1)
    dy, x = made.inputs
    assert x.numel() >= 64
    assert tensors.to_bits(x, FP32)[:2].tolist() == [0xC0000000, 0x80000000]
    assert tensors.to_bits(dy, FP32)[:2].tolist() == [0x3F800000, 0x7FC00001]
    assert (made.name, made.exhaustive) == ("replay", False)
    wide = sweep.replay(FORMATS["fp64"], ((1 << 63,),))
    assert math.copysign(1.0, float(wide.x[0])) == -1.0


def test_replay_of_nothing_is_an_error() -> None:
    with pytest.raises(EmptySampleError):
        sweep.replay(BF16, ())
