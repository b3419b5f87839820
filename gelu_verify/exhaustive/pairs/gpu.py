"""Measures rows of pairs on a GPU: launches the Triton kernel and gathers its figures."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
import torch

from gelu_verify.errors import UnavailableError
from gelu_verify.exhaustive.gpu_engine import reference_table
from gelu_verify.exhaustive.pairs import reference as exact
from gelu_verify.exhaustive.pairs.figures import PLAIN_LIMITS, Figures, Limits
from gelu_verify.exhaustive.pairs.reference import PATTERNS, PairReference
from gelu_verify.measure import histogram
from gelu_verify.measure.regions import REGIONS, TINY_BELOW

#: Flagged elements that a launch can tell; rows with more are measured in smaller parts.
_CAPACITY = 1 << 27
#: Columns at a time: two a thread, whose figures stay in registers.
_BLOCK, _WARPS = 256, 4
#: Registers a thread, by mode: as few as leave nothing to spill, so that many programs run at once.
#: What ptxas 12.8 makes of the kernel when it has to spill gives wrong counts, or faults.
_REGISTERS = {0: 128, 1: 168, 2: 168}
_BINS_POWER = 256
#: Cuts of a row of sums have room for this many.
_CUTS = 32


def measured(
    reference: PairReference, limits: Limits, first: int, actual: torch.Tensor
) -> Iterator[tuple[int, torch.Tensor, Figures]]:
    """Yield ``(first row, its results, figures)`` of results (R, 65536), in one part if it fits."""
    rows = actual.shape[0]
    figures = _launched(reference, limits, first, actual, min(rows * PATTERNS, _CAPACITY))
    if figures is not None:
        yield first, actual, figures
        return
    half = rows // 2
    yield from measured(reference, limits, first, actual[:half])
    yield from measured(reference, limits, first + half, actual[half:])


def _launched(
    reference: PairReference, limits: Limits, first: int, actual: torch.Tensor, capacity: int
) -> Figures | None:
    from gelu_verify.exhaustive.pairs import gpu_kernels

    device, rows = actual.device, actual.shape[0]
    table, terms = reference_table(reference.formula, 0, device)
    sums = torch.zeros((len(REGIONS), 5), dtype=torch.int64, device=device)
    bins = torch.zeros((len(REGIONS), _BINS_POWER), dtype=torch.int32, device=device)
    found = torch.zeros((rows, 12, 3), dtype=torch.int64, device=device)
    found[:, :, 1:] = -1
    worst = torch.full((rows, 12), -1.0, dtype=torch.float64, device=device)
    flagged = torch.empty(capacity, dtype=torch.int64, device=device)
    counter = torch.zeros(2, dtype=torch.int64, device=device)
    mode, left, right, codes = _operands(reference)
    starts = _starts(reference, codes, first, rows)
    stride = 0 if starts.dim() == 1 else starts.shape[1]
    is_bf16 = actual.dtype is torch.bfloat16
    kernel = gpu_kernels.rows_kernel[(rows,)](
        actual.view(torch.int16) if is_bf16 else actual, left, right, codes, starts, stride,
        starts.shape[-1] - 1, table, _constants(reference, limits), first, sums, bins, found, worst,
        flagged, counter, capacity,
        MODE=mode, FORMULA=reference.formula, TERMS=terms, LOWEST_BIN=histogram.OFFSET,
        BINS=histogram.BIN_COUNT, BLOCK=_BLOCK, IS_BF16=is_bf16, PRECISION=limits.precision,
        LOWEST_FIELD=limits.emin + 1023, num_warps=_WARPS,
        enable_fp_fusion=False, maxnreg=_REGISTERS[mode],
    )  # fmt: skip
    if getattr(kernel, "n_spills", 0):  # None in the interpreter
        raise UnavailableError(
            f"pairs on a GPU: the kernel spills {kernel.n_spills} registers at {_REGISTERS[mode]} "
            "a thread, expected 0, without which its figures are not to be trusted. "
            "Measure on a CPU, and report the versions of torch and triton."
        )
    count, finite = counter.tolist()
    if count > capacity:
        return None
    return _figures(flagged[:count], finite, *(t.cpu().numpy() for t in (sums, bins, found, worst)))


def _figures(
    flagged: torch.Tensor,
    finite: int,
    sums: np.ndarray,
    bins: np.ndarray,
    found: np.ndarray,
    worst: np.ndarray,
) -> Figures:
    figures = Figures(flagged, finite)
    figures.sums += sums[:, :4]
    figures.clipped += sums[:, 4]
    figures.histogram += bins[:, : histogram.BIN_COUNT]
    for column in range(12):
        largest, size = worst[:, column].max(), worst[:, column]
        if largest < 0:
            continue
        at = int(np.flatnonzero(size == largest)[0])
        place = at * PATTERNS + int(found[at, column, 2])
        early = int(np.flatnonzero(found[:, column, 0])[0])
        first = early * PATTERNS + int(found[early, column, 1])
        count = int(found[:, column, 0].sum())
        if column < len(REGIONS):
            figures.largest[column], figures.largest_at[column] = largest, place
        elif column < len(REGIONS) + 2:
            figures.beyond[column - 8], figures.beyond_first[column - 8] = count, first
        else:
            figures.zeros[:, column - 10] = count, first, place
            figures.zero_worst[column - 10] = largest
    return figures


def _operands(
    reference: PairReference,
) -> tuple[int, torch.Tensor, torch.Tensor, torch.Tensor]:
    """Return the kernel's mode, both factors (or summands), and the packed codes."""
    values, factor = reference.values, reference.factor
    if factor is None or reference.codes is None:
        return 2, values, values, torch.zeros(1, dtype=torch.int32, device=values.device)
    packed = (reference.codes * 4 + reference.certain.long()).int()
    return (0, factor, values, packed) if reference.swept == 0 else (1, values, factor, packed)


def _starts(reference: PairReference, packed: torch.Tensor, first: int, rows: int) -> torch.Tensor:
    """Return where the segments of rows begin, and where the last ends, int32 (..., segments + 1).

    Those of products are the same in all rows: none changes with a column that is not the swept
    argument.
    """
    device = packed.device
    if reference.factor is not None:
        if reference.swept == 0:
            return torch.tensor([0, PATTERNS], dtype=torch.int32, device=device)
        changes = (packed[1:] != packed[:-1]).nonzero().flatten().int() + 1
        ends = torch.tensor([0, PATTERNS], dtype=torch.int32, device=device)
        return torch.cat((ends[:1], changes, ends[1:]))
    from gelu_verify.exhaustive.pairs import gpu_sums

    cuts = _cuts(reference)
    count = 1 + len(cuts)
    padded = torch.full((2, _CUTS), math.nan, dtype=torch.float64)
    padded[0, 1:count] = torch.tensor(cuts, dtype=torch.float64)
    padded[1, 1:count] = torch.tensor(cuts[::-1], dtype=torch.float64)
    starts = torch.full((rows, 2 * count + 1), PATTERNS, dtype=torch.int32, device=device)
    gpu_sums.starts_kernel[(rows,)](
        reference.values, padded.to(device), first, starts, COUNT=count, num_warps=2
    )
    return starts


def _cuts(reference: PairReference) -> list[float]:
    """Return the sums at which a region, certainty or the way to the exact value changes."""
    zero, deep, tail, shoulder, centre, identity = reference.regions.borders()
    # What changes beyond a number, changes at the next one.
    beyond = [zero, centre, -math.inf, -exact.FAR]
    beyond += [-size for size in (TINY_BELOW, exact.NEAR_ZERO, exact.CERTAIN_BELOW)]
    at = [deep, tail, shoulder, identity, math.inf, exact.FAR, exact.CERTAIN_FROM]
    at += [TINY_BELOW, exact.NEAR_ZERO, exact.CERTAIN_BELOW]
    return sorted({*at, *(math.nextafter(number, math.inf) for number in beyond)})


def _constants(reference: PairReference, limits: Limits) -> torch.Tensor:
    open_limits = [end for limit in PLAIN_LIMITS for end in _open(limit)]
    plain = [end for limit in PLAIN_LIMITS for end in (math.inf, limit)]
    numbers = [
        limits.overflow, 2.0 ** (limits.emin - limits.precision), limits.flag_from,
        exact.curvature(reference.formula), *open_limits, *plain,
        *reference.regions.borders(), exact.CERTAIN_BELOW,
    ]  # fmt: skip
    return torch.tensor(numbers, dtype=torch.float64, device=reference.values.device)


def _open(limit: float) -> tuple[float, float]:
    """Return the smallest and the largest error within ``OPEN`` of a limit."""
    low, high = limit - exact.OPEN, limit + exact.OPEN
    if limit - low > exact.OPEN:
        low = math.nextafter(low, math.inf)
    if high - limit > exact.OPEN:
        high = math.nextafter(high, 0.0)
    return low, high
