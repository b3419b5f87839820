"""Floating-point formats on torch tensors: bits to values, ordinals, exact rounding.

Everything here is integer or exact float64 work; no conversion of torch's own is trusted to round
(float64 to bfloat16 goes through float32 there and rounds twice).
"""

from __future__ import annotations

from collections.abc import Iterable

import torch

from gelu_verify.errors import UnavailableError
from gelu_verify.formats.definition import FORMATS, Format

_TORCH_NAMES = {
    "fp64": "float64",
    "fp32": "float32",
    "bf16": "bfloat16",
    "fp16": "float16",
    "fp8_e4m3fn": "float8_e4m3fn",
    "fp8_e5m2": "float8_e5m2",
}
_CARRIERS = {64: torch.int64, 32: torch.int32, 16: torch.int16, 8: torch.uint8}


def dtype(fmt: Format) -> torch.dtype:
    """Return torch's dtype for a format."""
    found = getattr(torch, _TORCH_NAMES[fmt.name], None)
    if found is None:
        raise UnavailableError(
            f"format {fmt.name}: got torch {torch.__version__} without {_TORCH_NAMES[fmt.name]}, "
            "expected a torch that has it. Install a newer torch."
        )
    return found


def from_bits(bits: torch.Tensor, fmt: Format) -> torch.Tensor:
    """Return the values (dtype of ``fmt``) of int64 bit patterns, any shape."""
    return bits.to(_CARRIERS[fmt.bits]).view(dtype(fmt))


def signed(pattern: int, fmt: Format) -> int:
    """Return a bit pattern as int64 holds it: those of fp64 with a sign bit are negative there."""
    return pattern - (1 << 64) if fmt.bits == 64 and pattern >= 1 << 63 else pattern


def from_patterns(patterns: Iterable[int], fmt: Format) -> torch.Tensor:
    """Return the values (N,), dtype of ``fmt``, of bit patterns as Python integers."""
    held = [signed(pattern, fmt) for pattern in patterns]
    return from_bits(torch.tensor(held, dtype=torch.int64), fmt)


def to_bits(values: torch.Tensor, fmt: Format) -> torch.Tensor:
    """Return the bit patterns as non-negative int64 (fp64: int64 with its sign)."""
    carrier = values.contiguous().view(_CARRIERS[fmt.bits]).to(torch.int64)
    return carrier if fmt.bits == 64 else carrier & ((1 << fmt.bits) - 1)


def ordinals(values: torch.Tensor, fmt: Format) -> torch.Tensor:
    """Return signed magnitudes (int64): neighbours differ by one, both zeros give 0."""
    bits = to_bits(values, fmt)
    if fmt.bits == 64:
        return torch.where(bits < 0, -(bits & 0x7FFF_FFFF_FFFF_FFFF), bits)
    magnitude = bits & (fmt.sign_bit - 1)
    return torch.where(bits >= fmt.sign_bit, -magnitude, magnitude)


def from_ordinals(order: torch.Tensor, fmt: Format) -> torch.Tensor:
    """Return the values with the given ordinals (0 gives +0)."""
    sign = -(2**63) if fmt.bits == 64 else fmt.sign_bit
    return from_bits(torch.where(order < 0, -order | sign, order), fmt)


def binade(values: torch.Tensor, fmt: Format, inward: torch.Tensor | None = None) -> torch.Tensor:
    """Return ``max(floor(log2|y|), emin)`` (int64) of float64 values, for formats below fp64.

    inward: where True, the exact number is slightly nearer to zero than the float64 value, which
    matters when that is a power of two: the exact number then lies in the binade below.
    """
    magnitude = values.view(torch.int64) & 0x7FFF_FFFF_FFFF_FFFF
    if inward is not None:
        # Subtracting 1 from the pattern moves a power of two, and nothing else, a binade down.
        magnitude = (magnitude - inward.to(torch.int64)).clamp_(min=0)
    return ((magnitude >> 52) - 1023).clamp_(min=fmt.emin)


def power_of_two(exponent: torch.Tensor) -> torch.Tensor:
    """Return ``2^exponent`` as float64, exactly, for exponents from -1022 to 1023."""
    return ((exponent + 1023) << 52).view(torch.float64)


def round_float64(values: torch.Tensor, fmt: Format) -> torch.Tensor:
    """Return float64 values rounded once, to nearest even, to a format; for fp64 as they are."""
    if fmt.bits == 64:
        return values
    exponent = binade(values, fmt) - (fmt.precision - 1)
    rounded = torch.round(values * power_of_two(-exponent)) * power_of_two(exponent)
    overflow = torch.inf if fmt.infinities else torch.nan
    too_large = rounded.abs() > fmt.largest
    rounded = torch.where(too_large, overflow, rounded)
    return torch.copysign(rounded, values).to(dtype(fmt))


def format_of(tensor_dtype: torch.dtype) -> Format:
    """Return the format of a torch dtype, one of ours."""
    return next(
        FORMATS[name]
        for name, torch_name in _TORCH_NAMES.items()
        if getattr(torch, torch_name, None) is tensor_dtype
    )
