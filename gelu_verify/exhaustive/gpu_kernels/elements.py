"""What is known of every element of a part of a piece."""

from __future__ import annotations

import triton
import triton.language as tl

from gelu_verify.exhaustive.gpu_kernels.table import stretch_of
from gelu_verify.exhaustive.gpu_reference import exact
from gelu_verify.exhaustive.gpu_sets import per_ulp_of


@triton.jit
def piece_of(piece, table_ptr, rows, PIECE: tl.constexpr):
    """Return pointer to the table's row, first pattern, number of patterns, and kind of a piece.

    The kind is ``UNORDERED`` only for the piece that begins the stretch.
    """
    stretch = stretch_of(piece.to(tl.int64), table_ptr, rows)
    begin = tl.load(stretch)
    start = begin + (piece - tl.load(stretch + 2)) * PIECE
    count = tl.minimum(tl.load(stretch + 1) - start, PIECE).to(tl.int32)
    kind = tl.load(stretch + 3).to(tl.int32)
    return stretch, start, count, tl.where(start == begin, kind, kind & 5)


@triton.jit
def elements(
    start, at, count, kind, actual_ptr, first, coefficients_ptr, constants_ptr,
    FORMULA: tl.constexpr, DERIVATIVE: tl.constexpr, SERIES: tl.constexpr, TERMS: tl.constexpr,
    BLOCK: tl.constexpr,
):  # fmt: skip
    """Return what is known of elements ``at`` to ``at + BLOCK - 1`` of a piece of ``count``.

    mask; x, exact value and error in ULP, float64; got32; back: step back in ULP, 0 where none;
    whether the error is beyond 1/2 ULP, beyond 1 ULP, beyond 4 ULP, each False for what is
    selected; whether it is selected.
    constants: float64 (16,), see ``gpu_engine``.
    """
    lane = at + tl.arange(0, BLOCK)
    mask = lane < count
    bits = start.to(tl.int32) + lane
    x = bits.to(tl.float32, bitcast=True).to(tl.float64)
    source = actual_ptr + (start - first)
    got32 = tl.load(source + lane, mask=mask, other=0.0)
    got = got32.to(tl.float64)
    c2, c4 = tl.load(constants_ptr), tl.load(constants_ptr + 1)
    select_from, back_from = tl.load(constants_ptr + 2), tl.load(constants_ptr + 3)
    back_slack, open_width = tl.load(constants_ptr + 4), tl.load(constants_ptr + 9)
    y = exact(x, coefficients_ptr, c2, c4, FORMULA, DERIVATIVE, SERIES, TERMS)

    per_ulp = per_ulp_of(x, y, DERIVATIVE)
    error = tl.where(mask, (got - y) * per_ulp, 0.0)
    size = tl.abs(error)
    finite = size < 1e300
    half = finite & (size > 0.5 + open_width)
    one = finite & (size > 1.0 + open_width)
    far = finite & (size > 4.0 + open_width)
    selected = (size > select_from) | (tl.abs(size - 1.0) <= open_width)
    selected = selected | (tl.abs(size - 4.0) <= open_width)
    selected = selected | (~(far | ((got * y > 0.0) & finite)))
    near_half = tl.abs(size - 0.5) <= open_width
    back = tl.zeros((BLOCK,), tl.float64)
    if DERIVATIVE == 0:
        if SERIES:
            # RN(x/2 + x²·f''(0)/2): see Block._nearest_half.
            ties = (kind & 4) != 0
            m = bits & 0x7FFFFFFF
            due = tl.where(bits < 0, (m >> 1) | -2147483648, (m + 1) >> 1)
            half = tl.where(ties, finite & (got32.to(tl.int32, bitcast=True) != due), half)
            near_half = near_half & (~ties)
        ordered_from = tl.where(start > first, (kind & 2) >> 1, 1)
        ordered = mask & (lane >= ordered_from)
        before = tl.load(source + lane - 1, mask=ordered, other=0.0)
        step = tl.where(ordered, got - before.to(tl.float64), 0.0)
        step = tl.where((kind & 1) != 0, step, -step)
        back = tl.where((step > 0.0) & (step < 1e300), step * per_ulp, 0.0)
        selected = selected | ((back > back_from) & (step > tl.abs(x) * back_slack))
    selected = (selected | near_half) & mask
    half = half & mask & (~selected)
    one = one & mask & (~selected)
    far = far & mask & (~selected)
    return mask, x, y, got32, error, back, half, one, far, selected
