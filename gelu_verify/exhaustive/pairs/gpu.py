"""Measures rows of pairs on a GPU: launches the Triton kernel and gathers its figures."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

import numpy as np
import torch

from gelu_verify.exhaustive.gpu_engine import reference_table
from gelu_verify.exhaustive.pairs import reference as exact
from gelu_verify.exhaustive.pairs.figures import PLAIN_LIMITS, Figures, Limits
from gelu_verify.exhaustive.pairs.reference import PATTERNS, PairReference
from gelu_verify.measure import histogram
from gelu_verify.measure.regions import REGIONS

#: Flagged elements that a launch can tell; rows with more are measured in smaller parts.
_CAPACITY = 1 << 27
_BLOCK, _WARPS = 4096, 8
_BINS_POWER = 256


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
    is_bf16 = actual.dtype is torch.bfloat16
    gpu_kernels.rows_kernel[(rows,)](
        actual.view(torch.int16) if is_bf16 else actual, left, right, codes, table,
        _scales(limits, device),
        _constants(reference, limits), first, sums, bins, found, worst, flagged, counter, capacity,
        MODE=mode, FORMULA=reference.formula, TERMS=terms, LOWEST_BIN=histogram.OFFSET,
        BINS=histogram.BIN_COUNT, BLOCK=_BLOCK, IS_BF16=is_bf16, num_warps=_WARPS,
        enable_fp_fusion=False,
    )  # fmt: skip
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


@cache
def _scales(limits: Limits, device: torch.device) -> torch.Tensor:
    exponents = np.maximum(np.arange(2048) - 1023, limits.emin)
    return torch.from_numpy(np.exp2(limits.precision - 1.0 - exponents)).to(device)


def _constants(reference: PairReference, limits: Limits) -> torch.Tensor:
    numbers = [
        limits.overflow, limits.flag_from, exact.OPEN, *PLAIN_LIMITS,
        exact.curvature(reference.formula), exact.NEAR_ZERO, exact.FAR, exact.CERTAIN_BELOW,
        *reference.regions.borders(),
    ]  # fmt: skip
    return torch.tensor(numbers, dtype=torch.float64, device=reference.values.device)
