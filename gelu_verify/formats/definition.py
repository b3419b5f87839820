"""Floating-point formats as data, with exact scalar arithmetic on their bit patterns.

A finite value is ``(-1)^s · m · 2^(e - p + 1)`` with an integer significand ``m`` of ``p`` bits.
Every finite value of every format here is exactly a Python float (float64), so ``decode`` and
``encode`` are exact. Rounding takes an mpmath number, which has an integer significand and exponent
of its own, so that no step of it rounds twice.

Sources: IEEE 754-2019 (binary16, 32, 64); bfloat16 as in the Intel and Google definitions;
OFP8 as in the Open Compute Project's "8-bit Floating Point Specification" (2023).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import mpmath


@dataclass(frozen=True)
class Format:
    """A binary floating-point format.

    precision: bits of the significand, the hidden one included (p).
    emin, emax: exponents of the smallest normal and the largest finite binade, base 2.
    infinities: whether the format has them; where it has none, overflow rounds to NaN,
        as torch and ml_dtypes convert to e4m3fn.
    largest_significand: integer significand of the largest finite value (e4m3fn gives its
        topmost pattern to NaN, so that one is not all ones).
    """

    name: str
    bits: int
    precision: int
    emin: int
    emax: int
    infinities: bool
    largest_significand: int

    @property
    def unit_roundoff(self) -> float:
        """Half the spacing of the numbers around 1, relative: ``2^-p``."""
        return 2.0**-self.precision

    @property
    def arithmetic_unit(self) -> float:
        """Unit roundoff of the arithmetic kernels use for this format: float32 below fp64."""
        return 2.0**-53 if self.bits == 64 else 2.0**-24

    @property
    def quantum_exponent(self) -> int:
        """Exponent of the smallest subnormal, ``emin - p + 1``."""
        return self.emin - self.precision + 1

    @property
    def smallest_subnormal(self) -> float:
        """The smallest positive value."""
        return math.ldexp(1.0, self.quantum_exponent)

    @property
    def smallest_normal(self) -> float:
        """The smallest positive normal value, ``2^emin``."""
        return math.ldexp(1.0, self.emin)

    @property
    def largest(self) -> float:
        """The largest finite value."""
        return math.ldexp(float(self.largest_significand), self.emax - self.precision + 1)

    @property
    def sign_bit(self) -> int:
        """The bit pattern of -0."""
        return 1 << (self.bits - 1)

    @property
    def largest_bits(self) -> int:
        """The bit pattern of the largest finite value."""
        return self.encode(self.largest)

    @property
    def infinity_bits(self) -> int:
        """The pattern overflow rounds to, sign clear: infinity, or NaN in a format without one."""
        return self.largest_bits + 1

    @property
    def nan_bits(self) -> int:
        """A quiet NaN, sign clear."""
        if not self.infinities:
            return self.largest_bits + 1
        return self.infinity_bits | (1 << (self.precision - 2))

    @property
    def finite_count(self) -> int:
        """How many bit patterns are finite, both zeros counted."""
        return 2 * (self.largest_bits + 1)

    @property
    def nan_count(self) -> int:
        """How many bit patterns are NaN."""
        return (1 << self.bits) - self.finite_count - (2 if self.infinities else 0)

    def is_nan(self, bits: int) -> bool:
        """Tell whether a bit pattern is a NaN."""
        magnitude = bits & (self.sign_bit - 1)
        return magnitude > self.largest_bits + (1 if self.infinities else 0)

    def decode(self, bits: int) -> float:
        """Return the value of a bit pattern, exactly."""
        sign = -1.0 if bits & self.sign_bit else 1.0
        magnitude = bits & (self.sign_bit - 1)
        if magnitude > self.largest_bits:
            return math.nan if self.is_nan(bits) else sign * math.inf
        fraction_bits = self.precision - 1
        field, fraction = magnitude >> fraction_bits, magnitude & ((1 << fraction_bits) - 1)
        significand = fraction | (1 << fraction_bits) if field else fraction
        exponent = max(field, 1) + self.quantum_exponent - 1
        return math.copysign(math.ldexp(float(significand), exponent), sign)

    def encode(self, value: float) -> int:
        """Return the bit pattern of a value that the format holds exactly.

        Raises ValueError for a value that is not in the format: use :meth:`round` for those.
        """
        sign = self.sign_bit if math.copysign(1.0, value) < 0 else 0
        if math.isnan(value):
            return sign | self.nan_bits
        if math.isinf(value):
            if not self.infinities:
                raise ValueError(f"{self.name} has no infinity")
            return sign | self.infinity_bits
        if value == 0.0:
            return sign
        exponent = max(math.frexp(value)[1] - 1, self.emin)
        significand = math.ldexp(abs(value), self.precision - 1 - exponent)
        if significand != int(significand) or abs(value) > self.largest:
            raise ValueError(f"{value!r} is not a value of {self.name}")
        return sign | self._pattern(int(significand), exponent)

    def _pattern(self, significand: int, exponent: int) -> int:
        """Return the pattern of ``significand · 2^(exponent-p+1)``, carrying over if it is 2^p."""
        return ((exponent - self.emin) << (self.precision - 1)) + significand

    def round(self, exact: Any, *, negative_zero: bool = False) -> int:
        """Return the bit pattern of an mpmath number rounded to nearest, ties to even.

        Overflow and subnormals follow IEEE 754: at ``2^emax · (2 - 2^-p)`` and above the result is
        an infinity (e4m3fn: above 464, and NaN; 464 itself ties to 448). A negative number that
        rounds to zero gives -0; an exact zero has no sign in mpmath, so ``negative_zero`` says
        which one is meant.
        """
        exact = _unrounded(exact)
        if mpmath.isnan(exact):
            return self.nan_bits
        if mpmath.isinf(exact):
            return self.infinity_bits | (self.sign_bit if exact < 0 else 0)
        negative, man, exp, bit_count = exact._mpf_
        sign = self.sign_bit if negative or (man == 0 and negative_zero) else 0
        if man == 0:
            return sign
        exponent = max(exp + bit_count - 1, self.emin)
        if exponent > self.emax:
            return sign | self.infinity_bits
        shift = exponent - self.precision + 1 - exp
        significand = _round_shift(int(man), shift)
        return sign | min(self._pattern(significand, exponent), self.infinity_bits)

    def ulp(self, exact: Any) -> Any:
        """Return ``2^(max(floor(log2|y|), emin) - p + 1)``, an mpmath number, of unrounded y."""
        _, man, exp, bit_count = _unrounded(exact)._mpf_
        exponent = self.emin if man == 0 else max(exp + bit_count - 1, self.emin)
        return mpmath.ldexp(1, exponent - self.precision + 1)

    def ordinal(self, bits: int) -> int:
        """Return the signed magnitude of a pattern: consecutive values differ by 1, ±0 give 0."""
        magnitude = bits & (self.sign_bit - 1)
        return -magnitude if bits & self.sign_bit else magnitude

    def from_ordinal(self, ordinal: int) -> int:
        """Return the bit pattern with the given ordinal (0 gives +0)."""
        return ordinal if ordinal >= 0 else self.sign_bit | -ordinal

    def neighbour(self, value: float, steps: int) -> float:
        """Return the value ``steps`` places above (below, if negative) a finite value."""
        ordinal = self.ordinal(self.encode(value)) + steps
        limit = self.largest_bits
        return self.decode(self.from_ordinal(max(-limit, min(limit, ordinal))))


def _unrounded(number: Any) -> Any:
    """Return an mpmath number as it is; ``mpf(number)`` would round it to the ambient precision."""
    if isinstance(number, mpmath.mpf):
        return number
    with mpmath.workprec(max(64, number.bit_length()) if isinstance(number, int) else 64):
        return mpmath.mpf(number)


def _round_shift(man: int, shift: int) -> int:
    """Return ``man · 2^-shift`` rounded to an integer, ties to even."""
    if shift <= 0:
        return man << -shift
    if shift > man.bit_length() + 1:
        return 0
    quotient, remainder = man >> shift, man & ((1 << shift) - 1)
    half = 1 << (shift - 1)
    round_up = remainder > half or (remainder == half and quotient & 1)
    return quotient + int(round_up)


def _ieee(name: str, bits: int, precision: int, emax: int) -> Format:
    return Format(name, bits, precision, 1 - emax, emax, True, (1 << precision) - 1)


FORMATS: dict[str, Format] = {
    fmt.name: fmt
    for fmt in (
        _ieee("fp64", 64, 53, 1023),
        _ieee("fp32", 32, 24, 127),
        _ieee("bf16", 16, 8, 127),
        _ieee("fp16", 16, 11, 15),
        # S.1111.111 is NaN, so the largest significand of the top binade is 1110.
        Format("fp8_e4m3fn", 8, 4, -6, 8, False, 0b1110),
        _ieee("fp8_e5m2", 8, 3, 15),
    )
}
