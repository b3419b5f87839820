"""Floating-point formats: what their bits mean, exactly.

``formats.get("bf16")`` returns a :class:`Format`; :mod:`gelu_verify.formats.tensors` does the same
work on whole torch tensors.
"""

import mpmath

from gelu_verify.errors import UsageError, unknown_name
from gelu_verify.formats.definition import FORMATS, Format

__all__ = ["FORMATS", "Format", "get", "parse"]


def get(name: str) -> Format:
    """Return the format called ``name``; an unknown one is a usage error naming the nearest."""
    try:
        return FORMATS[name]
    except KeyError:
        raise unknown_name("format", name, FORMATS) from None


def parse(text: str, fmt: Format) -> int:
    """Return the bit pattern of ``0x...`` (as it is) or of a decimal (rounded to the format)."""
    try:
        if text.lower().startswith("0x"):
            pattern = int(text, 16)
            if pattern >> fmt.bits:
                raise ValueError
            return pattern
        # A decimal of n digits within the range of a format that is no boundary between two of its
        # values differs from every boundary in the first 4·(n + 400) bits: none is rounded twice.
        with mpmath.workprec(4 * (len(text) + 400)):
            number = mpmath.mpf(text)
        return fmt.round(number, negative_zero=text.strip().startswith("-"))
    except (ValueError, ZeroDivisionError):
        raise UsageError(
            f"input: got {text!r}, expected a decimal, inf, nan or a pattern of {fmt.bits} bits "
            f"such as 0x{fmt.encode(1.0):0{fmt.bits // 4}X} for {fmt.name}."
        ) from None
