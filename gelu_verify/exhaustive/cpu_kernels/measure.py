"""A stretch, chunk by chunk: inputs, exact values, errors, and who adds them up."""

from __future__ import annotations

import numpy as np

from gelu_verify.exhaustive import cpu_reference
from gelu_verify.exhaustive.cpu_kernels.chunk import any_chunk
from gelu_verify.exhaustive.cpu_kernels.columns import CHUNK, MAGNITUDE_64, ONE, SIGN
from gelu_verify.exhaustive.cpu_kernels.ordinary import ordinary_chunk
from gelu_verify.exhaustive.jit import compiled
from gelu_verify.exhaustive.pieces import TIES, UNORDERED


@compiled
def _scale(y_bits, error, per_ulp_bits, inward, got, y, per_ulp):
    """Write 1/ulp(y) and the signed errors in ULP. See ``block._per_ulp``."""
    for i in range(len(y)):
        magnitude = (y_bits[i] & np.int64(MAGNITUDE_64)) - inward
        magnitude = max(magnitude, np.int64(897 << 52)) & np.int64(0x7FF0_0000_0000_0000)
        per_ulp_bits[i] = np.int64((2 * 1023 + 23) << 52) - magnitude
    for i in range(len(y)):
        error[i] = (np.float64(got[i]) - y[i]) * per_ulp[i]


@compiled
def measure(
    actual, got_bits, low, start, stop, kind, formula, derivative, is_series, c, tanh_table,
    constants, rooms, room_bits, sizes, integers, results, counts, selected, chosen,
):  # fmt: skip
    """Measure a stretch and add to its row; return how many elements are selected in all.

    actual: float32, the first for pattern ``low``; got_bits: the same as int32. constants: float64
    (10,): c2, c4 of the series; the error and the step back from which an element is selected, the
    slack in ``|x|`` of the latter; threshold of the guard, unit of cancellation; where only 0 is
    explained, of the formula and of tanh; half the width in which a verdict is open. rooms: float64
    (6, CHUNK), room_bits: the same as int64.
    selected: int64, patterns from index ``chosen`` on.
    """
    inward = np.int64(start > SIGN or (derivative == 0 and ONE < start < SIGN))
    for begin in range(start, stop, CHUNK):
        n = min(CHUNK, stop - begin)
        x, y, t, per_ulp, error = (
            rooms[0, :n], rooms[1, :n], rooms[2, :n], rooms[3, :n], rooms[4, :n],
        )  # fmt: skip
        got = actual[begin - low : begin - low + n]
        patterns = room_bits[5, :n].view(np.int32)
        first = np.int32(begin - (1 << 32) if begin >= SIGN else begin)
        for i in range(n):
            patterns[i] = first + np.int32(i)
        inputs = patterns[:n].view(np.float32)
        for i in range(n):
            x[i] = np.float64(inputs[i])
        if is_series:
            cpu_reference.tiny(x, derivative, constants[0], constants[1], y)
        else:
            cpu_reference.full(x, formula, derivative, c, t, y)
        _scale(room_bits[1, :n], error, room_bits[3, :n], inward, got, y, per_ulp)
        before = np.nan
        if begin > start or (begin > low and kind & UNORDERED == 0):
            before = np.float64(actual[begin - low - 1])
        bits = got_bits[begin - low : begin - low + n]
        if kind & TIES == 0 and ordinary_chunk(
            begin, x, y, error, room_bits[4, :n], per_ulp, t, room_bits[2, :n], got, bits, before,
            kind, derivative, constants, sizes, integers, results, counts,
        ):  # fmt: skip
            continue
        chosen = any_chunk(
            begin, x, y, error, room_bits[4, :n], per_ulp, got, bits, before,
            kind, formula, derivative, tanh_table, constants,
            sizes, integers, results, counts, selected, chosen,
        )  # fmt: skip
    return chosen
