"""Closed-form thresholds against the design's real crossing points, scipy and Arb."""

from __future__ import annotations

import flint
import mpmath
import pytest
import scipy.special

from gelu_verify import formats
from gelu_verify.errors import UsageError
from gelu_verify.formats import Format
from gelu_verify.reference import arb
from gelu_verify.reference.thresholds import thresholds

FORMULAS = ("erf", "tanh", "sigmoid")

# Formula erf: the real numbers at which the exact function crosses the rounding boundary, to the
# digits they were published with (format, derivative, zero crossing, identity crossing, digits).
CROSSINGS = [
    ("fp32", 0, -14.356068, 5.3475156, 5e-7),
    ("fp64", 0, -38.580140, 8.2126862, 5e-7),
    ("fp16", 0, -5.723855, 3.447265625, 5e-7),
    ("bf16", 0, -13.561520, 2.78125, 5e-7),
    ("fp32", 1, -14.541349, 5.91016, 5e-6),
    ("fp64", 1, -38.674767, 8.71433, 5e-6),
    ("fp16", 1, -6.029807, 4.00832, 5e-6),
    ("bf16", 1, -13.753458, 3.39547, 5e-6),
]


@pytest.mark.parametrize(("name", "derivative", "zero", "identity", "digits"), CROSSINGS)
def test_thresholds_are_the_inputs_next_to_the_published_crossings(
    name: str, derivative: int, zero: float, identity: float, digits: float
) -> None:
    fmt = formats.get(name)
    actual_zero, actual_identity = thresholds("erf", fmt, derivative)
    assert actual_zero <= zero + digits
    assert fmt.neighbour(actual_zero, 1) >= zero - digits
    assert actual_identity >= identity - digits
    assert fmt.neighbour(actual_identity, -1) <= identity + digits


def test_value_thresholds_of_16_bit_formats() -> None:
    assert thresholds("erf", formats.get("fp16"))[1] == 3.447265625
    assert thresholds("erf", formats.get("bf16"))[1] == 2.78125


def _scipy_value(formula: str, x: float, derivative: int) -> float:
    """Float64 from scipy, relative error of some 1e-13: enough for a short format, ties apart."""
    if formula == "erf":
        probability = float(scipy.special.ndtr(x))
        density = float(mpmath.npdf(x))
        return x * probability if derivative == 0 else probability + x * density
    slope = 1.702 if formula == "sigmoid" else 2 * (2 / 3.141592653589793) ** 0.5
    cubic = 0.0 if formula == "sigmoid" else 0.044715
    v, v1 = slope * (x + cubic * x**3), slope * (1 + 3 * cubic * x * x)
    s, c = float(scipy.special.expit(v)), float(scipy.special.expit(-v))
    return x * s if derivative == 0 else s + x * v1 * s * c


@pytest.mark.parametrize("name", ["fp8_e4m3fn", "fp8_e5m2", "fp16", "bf16"])
@pytest.mark.parametrize("formula", FORMULAS)
@pytest.mark.parametrize("derivative", [0, 1])
def test_thresholds_agree_with_a_scan_of_every_input(
    name: str, formula: str, derivative: int
) -> None:
    fmt = formats.get(name)
    # The bit patterns from 0.25 to 600 or the largest value: beyond, nothing changes.
    first, last = fmt.encode(0.25), fmt.encode(min(fmt.largest, 512.0))
    positive = [fmt.decode(bits) for bits in range(first, last + 1)]
    zeros = [-x for x in positive if _rounds_to(fmt, formula, -x, derivative) != 0.0]
    kept = [
        x
        for x in positive
        if _rounds_to(fmt, formula, x, derivative) != (x if derivative == 0 else 1.0)
    ]
    expected = fmt.neighbour(min(zeros), -1), fmt.neighbour(max(kept), 1)
    assert thresholds(formula, fmt, derivative) == expected


def _rounds_to(fmt: Format, formula: str, x: float, derivative: int) -> float:
    return fmt.decode(fmt.round(mpmath.mpf(_scipy_value(formula, x, derivative))))


@pytest.mark.parametrize("name", ["fp32", "fp64"])
@pytest.mark.parametrize("formula", FORMULAS)
@pytest.mark.parametrize("derivative", [0, 1])
def test_thresholds_lie_between_proven_neighbours(name: str, formula: str, derivative: int) -> None:
    fmt = formats.get(name)
    zero, identity = thresholds(formula, fmt, derivative)
    with flint.ctx.workprec(200):
        half_quantum = flint.arb(fmt.smallest_subnormal) / 2
        assert -arb.ball(formula, zero, derivative, 200) < half_quantum
        assert -arb.ball(formula, fmt.neighbour(zero, 1), derivative, 200) > half_quantum
        for x, inside in ((identity, True), (fmt.neighbour(identity, -1), False)):
            goal = x if derivative == 0 else 1.0
            away = abs(arb.ball(formula, x, derivative, 200) - goal)
            # Below x for the value, above 1 for the derivative; no threshold is a power of two.
            half_gap = flint.arb(abs(fmt.neighbour(goal, 1 if derivative else -1) - goal)) / 2
            assert (away < half_gap) if inside else (away > half_gap), (x, inside)


def test_second_derivative_has_no_thresholds() -> None:
    with pytest.raises(UsageError, match="derivative"):
        thresholds("erf", formats.get("fp32"), 2)
