"""The truth: every GELU formula and its derivatives in mpmath, with a stated relative error.

Formulas (x real, v = 2u is the argument of the logistic function σ):

- ``erf``: ``x·Φ(x) = x·erfc(-x/√2)/2``, never ``1 + erf``, which loses the left tail;
- ``tanh``: ``x·(1 + tanh u)/2 = x·σ(v)``, ``v = 2·√(2/π)·(x + 0.044715·x³)``;
- ``sigmoid``: ``x·σ(v)``, ``v = 1.702·x``.

0.044715 and 1.702 are the exact decimals. Source: Hendrycks and Gimpel, "Gaussian Error Linear
Units (GELUs)", 2016, section 2.

Limits: at +∞ the value is +∞, the derivatives 1 and 0; at -∞ all of them are 0. An mpmath zero has
no sign; where a bit pattern is asked for (:func:`rounded`), the sign of a zero is that of the exact
value next to it: GELU and GELU' are negative in the left tail, so both give -0 there and at -∞, and
GELU(±0) = ±0.
"""

from __future__ import annotations

import math
from functools import cache
from typing import Any, Literal

import mpmath

from gelu_verify.errors import OracleError, unknown_name
from gelu_verify.formats import Format

FORMULAS = ("erf", "tanh", "sigmoid")
Derivative = Literal[0, 1, 2]

TANH_CUBIC = "0.044715"
SIGMOID_SLOPE = "1.702"

#: Bits carried beyond the ones asked for: the dozen roundings behind a term cost about 6.
_GUARD = 16
#: Bits that may go to cancellation before the sum is evaluated again with more.
_SPARE = 24
#: From here on f = x·(1 - ε) and f' = 1 + ε with 0 < ε < 2^-420 (``erf``: x·φ(x) < 2^-440 at 25;
#: ``tanh``: e^-v < 2^-1600; ``sigmoid``: x·v'·e^-v < 2^-610 at 256).
_SATURATED_FROM = {"erf": 25.0, "tanh": 25.0, "sigmoid": 256.0}


def gelu(x: Any, formula: str = "erf", *, bits: int = 200) -> Any:
    """Return the exact GELU of ``x`` as an mpmath number, relative error below ``2^-bits``."""
    return value(formula, x, bits=bits)


def gelu_derivative(x: Any, formula: str = "erf", *, bits: int = 200) -> Any:
    """Return the exact GELU'(x) as an mpmath number, relative error below ``2^-bits``."""
    return value(formula, x, derivative=1, bits=bits)


def gelu_backward(dy: Any, x: Any, formula: str = "erf", *, bits: int = 200) -> Any:
    """Return the exact ``dy · GELU'(x)``, relative error below ``2^-bits``."""
    with mpmath.workprec(bits + _GUARD):
        return mpmath.mpf(dy) * value(formula, x, derivative=1, bits=bits + 2)


def value(formula: str, x: Any, *, derivative: int = 0, bits: int = 200) -> Any:
    """Return a formula or its first or second derivative at ``x`` (float or mpmath number).

    The error is below ``2^-bits`` relative to the result, next to a zero of the result too: where
    the terms of the sum cancel, the working precision grows by the bits they lost.
    Raises UsageError for an unknown formula or derivative.
    """
    check_names(formula, derivative)
    x = _exact(x)
    known = _closed_form(x, derivative)
    if known is not None:
        return known
    # An error δ of an exponent w becomes a relative error w·δ: |w| < 2·|x|³ for |x| > 1.
    precision = bits + _GUARD + (0 if x == 0 else 3 * max(0, int(mpmath.mag(x))))
    spare = _SPARE
    for _ in range(16):
        with mpmath.workprec(precision + spare):
            terms = _TERMS[formula](x, derivative)
            total = mpmath.fsum(terms)
        lost = _lost_bits(terms, total, precision + spare)
        if lost <= spare:
            return total
        spare = lost + _SPARE
    raise OracleError(
        f"derivative {derivative} of {formula}: got a sum of 0 at x = {x} with {precision + spare} "
        "bits, expected a nonzero sum. Give x with fewer digits."
    )


def enclosure(formula: str, x: Any, *, derivative: int = 0, bits: int = 200) -> tuple[Any, Any]:
    """Return (lower, upper) around the exact value, about ``2^(2-bits)`` apart, relative."""
    exact = value(formula, x, derivative=derivative, bits=bits)
    if _closed_form(_exact(x), derivative) is not None:
        return exact, exact
    with mpmath.workprec(2 * bits + _GUARD):
        # Twice the stated error: what is over covers the rounding of the two ends.
        width = mpmath.ldexp(abs(exact), 1 - bits)
        return exact - width, exact + width


def rounded(formula: str, x: float, fmt: Format, *, derivative: int = 0, scale: float = 1.0) -> int:
    """Return the bits of ``RN_T(scale · f(x))``, f the formula or its derivative, proven.

    ``scale`` is the dy of ``gelu_backward``; -0.0 is told from 0.0. The precision grows until both
    ends of the enclosure round to the same bits (Ziv 1991), so the result is the correctly rounded
    one. Products of zeros, infinities and NaN follow IEEE 754.
    """
    special = _special_product(formula, x, scale, derivative)
    if special is not None:
        return _special_bits(special, fmt)
    if derivative < 2 and x >= _SATURATED_FROM[formula]:
        return _rounded_saturated(x, fmt, derivative, scale)
    bits = fmt.precision + 40
    while bits < 40_000:
        lower, upper = enclosure(formula, x, derivative=derivative, bits=bits)
        # fmt.round reads its argument at the precision in force: keep all bits of the product.
        with mpmath.workprec(4 * bits + 4096):
            low, high = fmt.round(lower * scale), fmt.round(upper * scale)
        if low == high:
            return low
        bits *= 2
    raise OracleError(
        f"rounding {formula} (derivative {derivative}) at x = {x!r} to {fmt.name}: got a rounding "
        f"boundary inside the enclosure of {bits // 2} bits, expected none. Report this input."
    )


@cache
def minimum(formula: str, bits: int = 200) -> tuple[Any, Any]:
    """Return (x_min, y_min), the only zero of GELU' and the value there, errors below ``2^-bits``.

    Newton's method on GELU' from -0.75. GELU' has one zero: in ``thresholds`` the argument.
    """
    x = mpmath.mpf(-0.75)
    with mpmath.workprec(bits + _GUARD):
        while True:
            slope = value(formula, x, derivative=1, bits=bits + _GUARD)
            step = slope / value(formula, x, derivative=2, bits=bits + _GUARD)
            x = x - step
            # The error after a step is about the step's square.
            if abs(step) < mpmath.ldexp(1, -(bits + 2 * _GUARD) // 2):
                return x, value(formula, x, bits=bits + _GUARD)


def check_names(formula: str, derivative: int) -> None:
    """Raise UsageError for a formula or a derivative that does not exist."""
    if formula not in FORMULAS:
        raise unknown_name("formula", formula, FORMULAS)
    if derivative not in (0, 1, 2):
        raise unknown_name("derivative", str(derivative), ("0", "1", "2"))


def _exact(x: Any) -> Any:
    """Return ``x`` as an mpmath number without rounding it to the precision in force."""
    if isinstance(x, mpmath.mpf):
        return x
    with mpmath.workprec(max(64, x.bit_length()) if isinstance(x, int) else 64):
        return mpmath.mpf(x)


def _closed_form(x: Any, derivative: int) -> Any | None:
    """Return the value where no evaluation is needed: NaN, ±∞ and 0; otherwise None."""
    if mpmath.isnan(x):
        return mpmath.nan
    if mpmath.isinf(x):
        return (mpmath.inf, mpmath.mpf(1), mpmath.mpf(0))[derivative] if x > 0 else mpmath.mpf(0)
    if x == 0 and derivative < 2:
        return (mpmath.mpf(0), mpmath.mpf(0.5))[derivative]
    return None


def _erf_terms(x: Any, derivative: int) -> list[Any]:
    """Terms whose sum is x·Φ(x), Φ(x) + x·φ(x) or 2·φ(x) - x²·φ(x)."""
    if derivative == 2:
        density = mpmath.exp(-x * x / 2) / mpmath.sqrt(2 * mpmath.pi)
        return [2 * density, -x * x * density]
    probability = mpmath.erfc(-x / mpmath.sqrt(2)) / 2
    if derivative == 0:
        return [x * probability]
    return [probability, x * mpmath.exp(-x * x / 2) / mpmath.sqrt(2 * mpmath.pi)]


def _logistic_terms(x: Any, v: Any, v1: Any, v2: Any, derivative: int) -> list[Any]:
    """Terms whose sum is x·σ(v) or a derivative of it in x; v1 and v2 are v' and v''.

    With s = σ(v) and c = σ(-v): ``s + x·v'·s·c`` and ``s·c·(2v' + x·v'' - x·v'²·tanh(v/2))``.
    """
    s = 1 / (1 + mpmath.exp(-v))
    if derivative == 0:
        return [x * s]
    c = 1 / (1 + mpmath.exp(v))
    if derivative == 1:
        return [s, x * v1 * s * c]
    return [2 * v1 * s * c, x * v2 * s * c, -x * v1 * v1 * s * c * mpmath.tanh(v / 2)]


def _tanh_terms(x: Any, derivative: int) -> list[Any]:
    cubic = mpmath.mpf(TANH_CUBIC)
    slope = 2 * mpmath.sqrt(2 / mpmath.pi)
    v, v1 = slope * x * (1 + cubic * x * x), slope * (1 + 3 * cubic * x * x)
    return _logistic_terms(x, v, v1, slope * 6 * cubic * x, derivative)


def _sigmoid_terms(x: Any, derivative: int) -> list[Any]:
    slope = mpmath.mpf(SIGMOID_SLOPE)
    return _logistic_terms(x, slope * x, slope, mpmath.mpf(0), derivative)


_TERMS = {"erf": _erf_terms, "tanh": _tanh_terms, "sigmoid": _sigmoid_terms}


def _lost_bits(terms: list[Any], total: Any, precision: int) -> int:
    """Return how many leading bits cancelled in the sum; all of them if it is zero."""
    if total == 0:
        return precision
    return int(max(mpmath.mag(term) for term in terms if term != 0) - mpmath.mag(total))


def _special_product(formula: str, x: float, scale: float, derivative: int) -> float | None:
    """Return scale·f as IEEE 754 has it where one factor is a zero, infinite or NaN, else None."""
    exact = value(formula, x, derivative=derivative, bits=16)
    finite = mpmath.isfinite(exact)
    if finite and exact != 0 and math.isfinite(scale) and scale != 0.0:
        return None
    if finite and exact == 0:
        # Signed like the values next to it: f(±0) = ±0, the tail is negative, f'' at +∞ too.
        return math.copysign(0.0, x if derivative < 2 else -1.0) * scale
    factor = float(mpmath.sign(exact)) if finite else float(exact)
    return factor * scale


def _special_bits(special: float, fmt: Format) -> int:
    if math.isnan(special):
        return fmt.nan_bits
    if math.isinf(special):
        return fmt.infinity_bits | (fmt.sign_bit if special < 0 else 0)
    # A zero, or f = ±1 times an infinity or zero: nothing else reaches this point.
    return fmt.encode(special)


def _rounded_saturated(x: float, fmt: Format, derivative: int, scale: float) -> int:
    """Return RN_T of scale·x·(1 - ε) or scale·(1 + ε), 0 < ε < 2^-420, without knowing ε.

    scale·x has at most 106 significant bits and T at most 53, so no rounding boundary of T lies
    between it and its product with 1 ± 2^-110, unless it is one itself; hence every such ε rounds
    the same way, and 2^-400 stands for it.
    """
    with mpmath.workprec(1024):
        epsilon = mpmath.ldexp(1, -400)
        limit = mpmath.mpf(scale) * (mpmath.mpf(x) if derivative == 0 else 1)
        return fmt.round(limit * (1 - epsilon if derivative == 0 else 1 + epsilon))
