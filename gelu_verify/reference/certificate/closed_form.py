"""Evaluate the reference in the zones that :mod:`.zones` settles by proof.

The proofs leave nothing to chance but the code they speak of: the borders of every zone and 4096
inputs spread over it are evaluated at every run, all four zeros and infinities, and NaNs.
"""

from __future__ import annotations

import numpy as np

from gelu_verify.errors import OracleError
from gelu_verify.reference import fast
from gelu_verify.reference.certificate.sweep import evaluated, reference
from gelu_verify.reference.certificate.zones import FP32, Zone, zones

_SAMPLES = 4096
#: Quiet and signalling NaNs, the smallest and the largest pattern of each.
_NANS = (0x7F800001, 0x7FBFFFFF, 0x7FC00000, 0x7FFFFFFF)
#: |f/(x/2) - 1| and |2f' - 1| for |x| < 2^-60, in units of 2^-53.
_VANISHING_CURVE = 1.0 / 32.0


def check(formula: str, order: int) -> dict[tuple[str, str], int]:
    """Return how many inputs of each zone (name, side) were evaluated.

    Raises OracleError at the first one where the reference is not what the proof says.
    """
    checked = {}
    for zone in zones(formula, order):
        if zone.method == "proof":
            bits = _inputs(zone)
            _check(zone, bits, formula, order)
            checked[zone.name, zone.side] = len(bits)
    return checked


def _inputs(zone: Zone) -> np.ndarray:
    """Return patterns of a zone, both ends among them."""
    if zone.name == "nan":
        magnitudes = np.array(_NANS, dtype=np.int64)
    else:
        count = min(zone.count, _SAMPLES)
        magnitudes = np.linspace(zone.first, zone.stop - 1, count).astype(np.int64)
    return (magnitudes | (FP32.sign_bit if zone.negative else 0)).astype(np.uint32)


def _check(zone: Zone, bits: np.ndarray, formula: str, order: int) -> None:
    with np.errstate(invalid="ignore"):  # numpy warns of signalling NaNs
        x, result = evaluated(bits, reference(formula, order))
    if zone.name == "nan":
        right = np.isnan(result)
    elif zone.name == "vanishing":
        limit = x / 2 if order == 0 else np.full_like(x, 0.5)
        error = np.abs(result - limit) / np.abs(limit) * 2.0**53 + _VANISHING_CURVE
        right = error <= fast.RELATIVE_ERROR_BOUND[formula, order]
    else:
        limit = _limit(zone, x, order)
        right = (result == limit) & (np.signbit(result) == np.signbit(limit))
    if not right.all():
        first = int(np.argmin(right))
        raise OracleError(
            f"fast reference, {formula}:{order}, zone {zone.name}: got {float(result[first])!r} at "
            f"x = {float(x[first])!r}, expected the closed form. Read the proof in zones.py again."
        )


def _limit(zone: Zone, x: np.ndarray, order: int) -> np.ndarray:
    """Return what the reference gives exactly in ``zero``, ``far`` and ``infinite``."""
    if zone.name == "zero":
        return x if order == 0 else np.full_like(x, 0.5)
    if zone.negative:
        return np.full_like(x, -0.0)
    return x if order == 0 else np.ones_like(x)
