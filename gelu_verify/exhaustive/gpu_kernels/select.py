"""Elements that the figures of pieces leave: put into sets, or written down in order."""

from __future__ import annotations

import triton
import triton.language as tl

from gelu_verify.exhaustive.gpu_kernels.elements import elements, piece_of
from gelu_verify.exhaustive.gpu_sets import class_of, level


@triton.jit
def _sets_of(
    x, y, got32, constants_ptr, tanh_ptr, FORMULA: tl.constexpr, DERIVATIVE: tl.constexpr
):  # fmt: skip
    """Return the sets of reason and class of elements beyond 4 ULP; reason -1 where one is open."""
    got = got32.to(tl.float64)
    reason = level(x, got, y, constants_ptr, tanh_ptr, FORMULA, DERIVATIVE)
    cls = class_of(got, y, constants_ptr)
    reason = tl.where(cls < 0, -1, reason)
    return reason, cls


@triton.jit
def set_kernel(
    actual_ptr, table_ptr, rows, first: tl.int64, coefficients_ptr, constants_ptr, tanh_ptr,
    members_ptr, integers_ptr, selected_ptr, pieces, set_sizes_ptr, set_integers_ptr, programs,
    FORMULA: tl.constexpr, DERIVATIVE: tl.constexpr, SERIES: tl.constexpr, TERMS: tl.constexpr,
    PIECE: tl.constexpr, BLOCK: tl.constexpr, SETS: tl.constexpr,
):  # fmt: skip
    """Put the far elements of some pieces into sets; what is open becomes selected.

    A program takes a part of BLOCK patterns. members: int64 (programs / (PIECE / BLOCK),), the
    pieces. set_sizes: float64 (SETS, programs), the largest error;
    set_integers: int64 (3·SETS, programs), first pattern, pattern of the largest error, count.
    """
    program = tl.program_id(0)
    parts: tl.constexpr = PIECE // BLOCK
    piece = tl.load(members_ptr + program // parts)
    _, start, count, kind = piece_of(piece, table_ptr, rows, PIECE)
    low = (program % parts) * BLOCK
    _, x, y, got32, error, _, _, _, far, _ = elements(
        start, low, count, kind, actual_ptr, first, coefficients_ptr, constants_ptr,
        FORMULA, DERIVATIVE, SERIES, TERMS, BLOCK,
    )  # fmt: skip
    start += low
    reason, cls = _sets_of(x, y, got32, constants_ptr, tanh_ptr, FORMULA, DERIVATIVE)
    lane = tl.arange(0, BLOCK)
    size = tl.abs(error)
    none: tl.constexpr = 4294967296
    is_open = tl.sum((far & (reason < 0)).to(tl.int32), 0)
    if is_open > 0:
        # They count as selected, and no longer as settled beyond 1/2 and 1 ULP.
        tl.atomic_add(selected_ptr + piece, is_open)
        for column in tl.static_range(5, 7):
            tl.atomic_add(integers_ptr + column * pieces + piece, -is_open.to(tl.int64))
    for number in tl.static_range(SETS):
        if number < 4:
            member = far & (reason == number)
        else:
            member = far & (reason >= 0) & (cls == number)
        members = tl.sum(member.to(tl.int32), 0)
        worst = tl.max(tl.where(member, size, 0.0), 0)
        at = tl.min(tl.where(member & (size == worst), lane, BLOCK), 0)
        earliest = tl.min(tl.where(member, lane, BLOCK), 0)
        tl.store(set_sizes_ptr + number * programs + program, worst)
        out = set_integers_ptr + program
        tl.store(out + number * programs, tl.where(members > 0, start + earliest, none))
        tl.store(out + (SETS + number) * programs, tl.where(members > 0, start + at, none))
        tl.store(out + (2 * SETS + number) * programs, members.to(tl.int64))


@triton.jit
def select_kernel(
    actual_ptr, table_ptr, rows, first: tl.int64, coefficients_ptr, constants_ptr,
    members_ptr, places_ptr, patterns_ptr, tanh_ptr,
    FORMULA: tl.constexpr, DERIVATIVE: tl.constexpr, SERIES: tl.constexpr, TERMS: tl.constexpr,
    PIECE: tl.constexpr, BLOCK: tl.constexpr, SETS: tl.constexpr,
):  # fmt: skip
    """Write the patterns (int32) of the selected elements of some pieces, in order.

    members, places: int64 (programs,): the piece, and where its first element goes. SETS: whether
    any element is beyond 4 ULP, and may be open.
    """
    program = tl.program_id(0)
    piece = tl.load(members_ptr + program)
    _stretch, start, count, kind = piece_of(piece, table_ptr, rows, PIECE)
    place = tl.load(places_ptr + program)
    for low in range(0, count, BLOCK):
        _mask, x, y, got32, _error, _back, _half, _one, far, selected = elements(
            start, low, count, kind, actual_ptr, first, coefficients_ptr, constants_ptr,
            FORMULA, DERIVATIVE, SERIES, TERMS, BLOCK,
        )  # fmt: skip
        chosen = selected.to(tl.int32)
        if SETS:
            reason, _cls = _sets_of(x, y, got32, constants_ptr, tanh_ptr, FORMULA, DERIVATIVE)
            chosen = tl.where(far & (reason < 0), 1, chosen)
        at = low + tl.arange(0, BLOCK)
        target = patterns_ptr + place + tl.cumsum(chosen, 0) - 1
        tl.store(target, start.to(tl.int32) + at, mask=chosen > 0)
        place += tl.sum(chosen, 0)


@triton.jit
def sample_kernel(
    actual_ptr, first: tl.int64, begin: tl.int64, stop: tl.int64, integers_ptr, results_ptr, cells,
    COLUMNS: tl.constexpr, SAMPLES: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """Keep the result at every sample (rows, SAMPLES) whose pattern is in [begin, stop)."""
    cell = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = cell < cells
    column = (cell // SAMPLES) * COLUMNS + cell % SAMPLES
    at = tl.load(integers_ptr + column, mask=mask, other=4294967296)
    here = mask & (at >= begin) & (at < stop)
    got = tl.load(actual_ptr + (at - first), mask=here, other=0)
    tl.store(results_ptr + cell, got, mask=here)
