"""The fast reference against Arb on every 16-bit input and a stratified sample of fp32."""

from __future__ import annotations

import math
from collections.abc import Iterable

import flint
import mpmath
import numpy as np
import pytest
import torch

from gelu_verify import formats
from gelu_verify.errors import UsageError
from gelu_verify.reference import arb, crosscheck, fast, oracle
from gelu_verify.reference.thresholds import thresholds

CASES = [(formula, order) for formula in ("erf", "tanh", "sigmoid") for order in (0, 1)]
#: Below this the float64 result may have lost digits; it is then checked for size and sign only.
SMALLEST = 2.0**-1000


def _evaluate(x: torch.Tensor, formula: str, order: int) -> torch.Tensor:
    return fast.derivative(x, formula) if order else fast.gelu(x, formula)


def _worst_error(
    points: Iterable[float], results: Iterable[float], formula: str, order: int
) -> tuple[float, float]:
    """Return (largest relative error in 2^-53, its x), the ball's own radius included."""
    worst, where = -1.0, math.nan
    with flint.ctx.workprec(96):
        for x, result in zip(points, results, strict=True):
            if x == 0.0:
                assert result == (0.5 if order else x)
                continue
            exact = arb.ball(formula, x, order, 96)
            if abs(exact) < SMALLEST:
                assert math.copysign(1.0, result) < 0, x
                assert abs(result) <= SMALLEST, x
                continue
            error = float(((result - exact) / exact).abs_upper()) * 2.0**53
            if not error <= worst:
                worst, where = error, x
    return worst, where


def _assert_within_bound(x: torch.Tensor, formula: str, order: int) -> None:
    results = _evaluate(x, formula, order)
    worst, where = _worst_error(x.tolist(), results.tolist(), formula, order)
    assert worst <= fast.RELATIVE_ERROR_BOUND[formula, order], f"{worst} u at x = {where!r}"


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize(("formula", "order"), CASES)
def test_every_16_bit_input_is_within_the_bound(
    dtype: torch.dtype, formula: str, order: int
) -> None:
    patterns = torch.arange(-(2**15), 2**15, dtype=torch.int32).to(torch.int16)
    x = patterns.view(dtype).double()
    x = x[x.isfinite()]
    assert x.numel() == formats.get("bf16" if dtype == torch.bfloat16 else "fp16").finite_count
    _assert_within_bound(x, formula, order)


def _fp32_sample(formula: str, order: int) -> torch.Tensor:
    """Every binade of both signs, dense where the result is not closed-form, marks' neighbours."""
    random = np.random.default_rng(20240607)
    parts = [random.uniform(-15, 6, 6000), random.uniform(-70, 12, 2000)]
    magnitudes = random.integers(1, 0x7F800000, 3000, dtype=np.uint32).view(np.float32)
    parts += [magnitudes * random.choice([-1.0, 1.0], 3000)]
    marks = [
        float(oracle.minimum(formula, 64)[0]),
        *thresholds(formula, formats.get("fp32"), order),
    ]
    marks += [0.0, math.sqrt(2.0), -math.sqrt(2.0), -1.5, -5.54, -6.0, 6.0]
    for mark in marks:
        bits = formats.get("fp32").ordinal(int(np.float32(mark).view(np.uint32)))
        near = [formats.get("fp32").from_ordinal(bits + step) for step in range(-40, 41)]
        parts += [np.array(near, dtype=np.uint32).view(np.float32)]
    parts += [float(oracle.minimum(formula, 64)[0]) + random.normal(0, 1e-3, 1000)]
    return torch.from_numpy(np.concatenate(parts).astype(np.float32)).double()


@pytest.mark.parametrize(("formula", "order"), CASES)
def test_sample_of_fp32_is_within_the_bound(formula: str, order: int) -> None:
    _assert_within_bound(_fp32_sample(formula, order), formula, order)


@pytest.mark.parametrize(("formula", "order"), CASES)
def test_mpmath_agrees_on_a_subset(formula: str, order: int) -> None:
    points = [float(np.float32(x)) for x in crosscheck.grid() if abs(x) < 30]
    results = _evaluate(torch.tensor(points, dtype=torch.float64), formula, order).tolist()
    bound = fast.RELATIVE_ERROR_BOUND[formula, order]
    for x, result in zip(points, results, strict=True):
        exact = oracle.value(formula, x, derivative=order, bits=120)
        with mpmath.workprec(120):
            if abs(exact) >= SMALLEST:
                assert abs(result - exact) <= bound * 2.0**-53 * abs(exact), x


def test_check_can_fail() -> None:
    x = torch.linspace(-10, 3, 50).float().double()
    results = (fast.gelu(x) * (1 + 40 * 2.0**-53)).tolist()
    worst, _ = _worst_error(x.tolist(), results, "erf", 0)
    assert worst > fast.RELATIVE_ERROR_BOUND["erf", 0]


@pytest.mark.parametrize("formula", ["erf", "tanh", "sigmoid"])
def test_special_values(formula: str) -> None:
    x = torch.tensor([0.0, -0.0, math.inf, -math.inf, math.nan, 3.4e38, -3.4e38]).double()
    value, slope = fast.gelu(x, formula).tolist(), fast.derivative(x, formula).tolist()
    assert [str(y) for y in value[:5]] == ["0.0", "-0.0", "inf", "-0.0", "nan"]
    assert value[5] == x[5].item()
    assert str(value[6]) == "-0.0"
    assert [str(y) for y in slope] == ["0.5", "0.5", "1.0", "-0.0", "nan", "1.0", "-0.0"]


@pytest.mark.parametrize(("formula", "order"), CASES)
def test_result_does_not_depend_on_the_position(formula: str, order: int) -> None:
    x = (
        torch.rand(3 * fast.CHUNK + 5, generator=torch.Generator().manual_seed(3)) * 20 - 14
    ).double()
    whole = _evaluate(x, formula, order)
    for start, stop in [
        (0, 1),
        (1, 2),
        (1, 40),
        (3, 1000),
        (5, fast.CHUNK + 12),
        (7, 3 * fast.CHUNK),
    ]:
        part = _evaluate(x[start:stop], formula, order)
        assert torch.equal(part, whole[start:stop]), (start, stop)
    assert torch.equal(_evaluate(x[::3], formula, order), whole[::3])
    assert torch.equal(_evaluate(x[:200].clone(), formula, order), whole[:200])


def test_shape_is_kept_and_the_input_is_left_alone() -> None:
    x = torch.linspace(-3, 3, 24).double().reshape(2, 3, 4).transpose(0, 2)
    before = x.clone()
    assert fast.gelu(x).shape == x.shape
    assert torch.equal(fast.gelu(x)[1, 2, 0], fast.gelu(x[1, 2, 0]))
    assert fast.derivative(torch.empty(0, dtype=torch.float64)).shape == (0,)
    assert torch.equal(x, before)


def test_wrong_arguments_are_usage_errors() -> None:
    with pytest.raises(UsageError, match=r"torch\.float32"):
        fast.gelu(torch.ones(3))
    with pytest.raises(UsageError, match="erf"):
        fast.derivative(torch.ones(3, dtype=torch.float64), "erff")


@pytest.mark.parametrize(("formula", "order"), CASES)
def test_inward_agrees_with_the_oracle_in_closed_form_zones(formula: str, order: int) -> None:
    tiny = [sign * 2.0**-k for k in (60, 80, 126, 149) for sign in (-1.0, 1.0)]
    checked = 0
    for x in [*tiny, 32.0, 64.0]:
        point = torch.tensor([x], dtype=torch.float64)
        result = _evaluate(point, formula, order).item()
        assert abs(math.frexp(result)[0]) == 0.5, (x, result)
        if (formula, x) == ("tanh", 64.0):
            continue  # the oracle would need 27000 bits to tell it from the limit
        exact = oracle.value(formula, x, derivative=order, bits=8000)
        with mpmath.workprec(9000):
            assert fast.inward(point, order).item() is bool(abs(exact) < abs(result)), x
        checked += 1
    assert checked >= len(tiny) + 1


@pytest.mark.parametrize(("formula", "order"), [case for case in CASES if case[1] == 1])
def test_derivative_stays_on_its_side_of_one_half(formula: str, order: int) -> None:
    """A rounding across 1/2 would halve or double the ULP of the exact value."""
    x = torch.logspace(-45, -1, 4000, dtype=torch.float64).float().double()
    assert bool((fast.derivative(x, formula) >= 0.5).all())
    assert bool((fast.derivative(-x, formula) <= 0.5).all())
