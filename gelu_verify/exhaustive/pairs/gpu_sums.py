"""Sums of two arguments in Triton: f(x + bias), and where a row of sums changes its nature."""

from __future__ import annotations

import triton
import triton.language as tl

from gelu_verify.exhaustive.gpu_reference import tail


@triton.jit
def _beside(limit, distance):
    """Return ``limit + distance``, two units of float64 off a limit that may be a tie."""
    large = limit * 8388608.0
    upper = large - (large - limit)
    off = tl.maximum(tl.abs(distance), tl.abs(limit) * 4.440892098500626e-16)
    moved = tl.where(distance < 0.0, limit - off, limit + off)
    return tl.where(upper == limit, moved, limit + distance)


@triton.jit
def _two_sum(x, bias):
    s = x + bias
    virtual = s - x
    return s, (x - (s - virtual)) + (bias - virtual)


@triton.jit
def in_middle(x, bias, table, FORMULA: tl.constexpr, TERMS: tl.constexpr):
    """Return f(x + bias) for 2^-40 <= |x + bias| < 64 (``reference.of_sum``)."""
    s, lost = _two_sum(x, bias)
    below = s * tail(tl.minimum(tl.abs(s), 64.0), table, FORMULA, TERMS)
    value = tl.where(s < 0.0, below, s - below)
    # 5e-324 is subnormal, and a device may read it as 0: 2^-1000 is as far below every format.
    value = tl.where((value == 0.0) & (s < 0.0), -9.332636185032189e-302, value)
    gap = lost - below
    gap = tl.where((lost == 0.0) & (gap == 0.0), -9.332636185032189e-302, gap)
    close = (s >= 4.0) & (tl.abs(gap) < s * 3.552713678800501e-15)
    return tl.where(close, _beside(s, gap), value)


@triton.jit
def outside(x, bias, curvature):
    """Return f(x + bias) where it is known in closed form: next to 0, from 64 on, not finite."""
    s, lost = _two_sum(x, bias)
    # -0 by its bits: compiled Triton makes +0 of the number.
    sign = ((s.to(tl.int64, bitcast=True) >> 63) << 63).to(tl.float64, bitcast=True)
    size = tl.abs(s)
    gap = tl.where(lost == 0.0, -9.332636185032189e-302, lost)
    value = tl.where(s < 0.0, sign, s)
    value = tl.where((s >= 64.0) & (size < float("inf")), _beside(s, gap), value)
    half = _beside(s * 0.5, lost * 0.5 + curvature * s * s)
    return tl.where((size < 9.094947017729282e-13) & (s != 0.0), half, value)


@triton.jit
def region_of(s, constants):
    """Return the region code of s (``Regions.codes``), -1 where it is not finite."""
    size = tl.abs(s)
    code = (s >= tl.load(constants + 1)).to(tl.int32) + 1
    code += (s >= tl.load(constants + 2)).to(tl.int32)
    code += (s >= tl.load(constants + 3)).to(tl.int32)
    code += (s > tl.load(constants + 4)).to(tl.int32)
    code += ((s >= tl.load(constants + 5)) & (s > tl.load(constants + 4))).to(tl.int32)
    code = tl.where(s <= tl.load(constants), 0, code)
    code = tl.where(size < 0.000244140625, 7, code)
    return tl.where(size < float("inf"), code, -1)


@triton.jit
def starts_kernel(values_ptr, cuts_ptr, first, starts_ptr, COUNT: tl.constexpr):
    """Store where the segments of a row begin: int32 (rows, 2·COUNT + 1), ascending.

    cuts: float64 (2, 32). A sum grows over the columns 0 to 0x7FFF, and falls over the others: a
    segment of the first half begins where it is no longer below its cut, one of the second where
    it is no longer from it on; a NaN is beyond every cut, and every number beyond a cut of NaN.
    """
    row = tl.program_id(0)
    lane = tl.arange(0, 64)
    falls = lane >= 32
    cut = tl.load(cuts_ptr + lane)
    x = tl.load(values_ptr + first + row)
    low = tl.where(falls, 32768, 0)
    high = low + 32768
    for _ in range(16):
        middle = (low + high) >> 1
        s = x + tl.load(values_ptr + tl.minimum(middle, 65535))
        begun = tl.where(falls, ~(s >= cut), ~(s < cut))
        is_open = low < high
        high = tl.where(is_open & begun, middle, high)
        low = tl.where(is_open & (~begun), middle + 1, low)
    place = (lane & 31) + tl.where(falls, COUNT, 0)
    tl.store(starts_ptr + row * (2 * COUNT + 1) + place, low, mask=(lane & 31) < COUNT)
