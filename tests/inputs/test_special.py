"""Special patterns and landmarks against literals."""

from __future__ import annotations

import math

import numpy as np
import pytest

from gelu_verify.formats import FORMATS
from gelu_verify.inputs.special import landmarks, special_bits
from tests import strategies


def test_special_patterns_of_fp16_are_those_of_the_standard() -> None:
    magnitudes = {0x0000, 0x0001, 0x03FF, 0x0400, 0x7BFF, 0x7C00, 0x7C01, 0x7E00}
    expected = magnitudes | {m | 0x8000 for m in magnitudes}
    assert set(special_bits(FORMATS["fp16"])) == expected


def test_special_patterns_of_e4m3fn_have_no_infinity() -> None:
    magnitudes = {0x00, 0x01, 0x07, 0x08, 0x7E, 0x7F}
    assert set(special_bits(FORMATS["fp8_e4m3fn"])) == magnitudes | {m | 0x80 for m in magnitudes}


@pytest.mark.parametrize("name", strategies.ALL)
def test_every_kind_of_special_value_is_there_once(name: str) -> None:
    fmt = FORMATS[name]
    patterns = special_bits(fmt)
    assert len(patterns) == len(set(patterns))
    values = [fmt.decode(bits) for bits in patterns]
    signs = {math.copysign(1.0, value) for value in values if value == 0.0}
    assert signs == {1.0, -1.0}
    assert any(math.isnan(value) for value in values)
    assert {math.inf, -math.inf} <= set(values) or not fmt.infinities
    assert {fmt.largest, -fmt.largest, fmt.smallest_subnormal, fmt.smallest_normal} <= set(values)


@pytest.mark.parametrize("name", ["fp32", "fp64"])
def test_landmarks_hold_guards_extrema_and_thresholds(name: str) -> None:
    points = set(landmarks(FORMATS[name]))
    kind = np.float32 if name == "fp32" else np.float64
    # Guards, ±6√2, the minima of the three formulas, the identity threshold of erf.
    real = [6.0, -6.0, 8.485281374238571, -8.485281374238571, -5.54, -3.0, 1.4142135623730951]
    real += [-0.7517915246935645, -0.7524614220710163, -0.751154255441289]
    for point in real:
        near = min(points, key=lambda p: abs(p - point))
        assert abs(near - point) <= np.spacing(kind(abs(point))), point
    identity = {"fp32": 5.3475156, "fp64": 8.2126862}[name]
    assert any(abs(point - identity) < 1e-6 for point in points)


@pytest.mark.parametrize("name", strategies.ALL)
def test_landmarks_are_values_of_the_format_ascending(name: str) -> None:
    fmt = FORMATS[name]
    points = landmarks(fmt)
    assert list(points) == sorted(set(points))
    for point in points:
        assert fmt.decode(fmt.encode(point)) == point
