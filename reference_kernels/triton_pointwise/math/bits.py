"""fp32 numbers as bits, and the product and sum that rounds once."""

import triton
import triton.language as tl

# Triton's interpreter before 3.9 computes tl.fma as a product and a sum; compiled code never does.
FMA_ROUNDS_TWICE = tl.constexpr(
    triton.knobs.runtime.interpret
    and tuple(int(part) for part in triton.__version__.split(".")[:2]) < (3, 9)
)


@triton.jit
def negated(value):
    """-value. Triton's own minus is 0 - value: an instruction, and +0 for +0."""
    return value * -1.0


@triton.jit
def zero_or_more(x):
    """max(-0, x), NaN for NaN. From its bits, because Triton makes +0 of the number -0.0.

    The larger of -0 and x, in this order: NumPy's maximum of two zeros is the second.
    """
    minus_zero = tl.full(x.shape, -0x80000000, tl.int32).to(tl.float32, bitcast=True)
    return tl.maximum(minus_zero, x, propagate_nan=tl.PropagateNan.ALL)


@triton.jit
def power_of_two(n):
    """2^n for an int32 n in [-126, 127]."""
    return ((n + 127) << 23).to(tl.float32, bitcast=True)


@triton.jit
def with_sign_of(value, x):
    """Set the sign bit of `value` if x has it: zero results become the zero of x's sign."""
    sign = x.to(tl.int32, bitcast=True) & -0x80000000
    return (value.to(tl.int32, bitcast=True) | sign).to(tl.float32, bitcast=True)


@triton.jit
def leading_12_bits(value):
    """Clear the low 12 significand bits: the product of two such values is exact."""
    return (value.to(tl.int32, bitcast=True) & -0x1000).to(tl.float32, bitcast=True)


@triton.jit
def fused(x, y, z):
    """x·y + z rounded once: exact residuals of products and quotients rely on it.

    The other way is by float64, where the product is exact; its second rounding matters only next
    to a tie of fp32, by 2^-29 of a place.
    """
    if FMA_ROUNDS_TWICE:
        wide = tl.cast(x, tl.float64) * tl.cast(y, tl.float64) + tl.cast(z, tl.float64)
        value = wide.to(tl.float32)
    else:
        value = tl.fma(x, y, z)
    return value
