"""Measures rows of pairs on a CPU: with numba where it is installed, else in torch."""

from __future__ import annotations

import importlib.util
from functools import cache

import numpy as np
import torch

from gelu_verify.exhaustive.pairs import reference as exact
from gelu_verify.exhaustive.pairs.figures import PLAIN_LIMITS, Figures, Limits
from gelu_verify.exhaustive.pairs.reference import PATTERNS, PairReference
from gelu_verify.measure.error import Class, measure
from gelu_verify.measure.regions import REGIONS
from gelu_verify.measure.summary import LARGEST_BATCH, RegionSummary


@cache
def has_numba() -> bool:
    """Tell whether the compiled loop can be used."""
    return importlib.util.find_spec("numba") is not None


def measured(reference: PairReference, limits: Limits, first: int, actual: torch.Tensor) -> Figures:
    """Return the figures of results (R, 65536) for rows from pattern ``first`` on."""
    if has_numba():
        return _compiled(reference, limits, first, actual)
    return in_torch(reference, limits, first, actual)


def _compiled(
    reference: PairReference, limits: Limits, first: int, actual: torch.Tensor
) -> Figures:
    from gelu_verify.exhaustive.pairs import compiled

    rows = actual.shape[0]
    figures = Figures(torch.empty(rows * PATTERNS, dtype=torch.int64))
    counters = (np.zeros(1, np.int64), np.zeros(1, np.int64))
    record = (
        figures.sums, figures.clipped, figures.histogram, figures.largest, figures.largest_at,
        figures.beyond, figures.beyond_first, figures.zeros, figures.zero_worst, counters[0],
        figures.flagged.numpy(), counters[1],
    )  # fmt: skip
    numbers = (limits.overflow, limits.flag_from, exact.OPEN, *PLAIN_LIMITS)
    got, scales = actual.float().numpy(), _scales(limits)
    values = reference.values.numpy()
    if reference.factor is None:
        found = _where_needed(reference, first, rows)
        zones = (exact.NEAR_ZERO, exact.FAR, exact.CERTAIN_BELOW)
        compiled.sum_rows(
            got, first, values, found, exact.curvature(reference.formula), zones,
            reference.regions.borders(), scales, numbers, record,
        )  # fmt: skip
    else:
        assert reference.codes is not None
        by_row = reference.swept == 0
        factor, codes = reference.factor.numpy(), reference.codes.numpy()
        left, right = (factor, values) if by_row else (values, factor)
        compiled.product_rows(
            got, first, left, right, reference.certain.numpy(), codes, by_row, scales, numbers,
            record,
        )  # fmt: skip
    figures.finite = int(counters[0][0])
    figures.flagged = figures.flagged[: int(counters[1][0])].clone()
    return figures


def _where_needed(reference: PairReference, first: int, rows: int) -> np.ndarray:
    """Return f at every sum of some rows where it is not known in closed form, in order."""
    from gelu_verify.exhaustive.pairs import compiled
    from gelu_verify.operators.base import never_zero
    from gelu_verify.reference import fast

    wanted = np.empty(rows * PATTERNS)
    count = compiled.wanted_rows(
        first, rows, reference.values.numpy(), exact.NEAR_ZERO, exact.FAR, wanted
    )
    s = torch.from_numpy(wanted[:count])
    return never_zero(fast.gelu(s, reference.formula), s, 0.0).numpy()


@cache
def _scales(limits: Limits) -> np.ndarray:
    """Return 1/ulp for every exponent field of float64."""
    exponents = np.maximum(np.arange(2048) - 1023, limits.emin)
    return np.exp2(limits.precision - 1.0 - exponents)


def in_torch(reference: PairReference, limits: Limits, first: int, actual: torch.Tensor) -> Figures:
    """Return the same figures by the general measure, on any device; some 50 times as slow."""
    device, rows = actual.device, actual.shape[0]
    figures = Figures(torch.empty(0, dtype=torch.int64))
    flagged = []
    columns = torch.arange(PATTERNS, device=device)
    for row in range(rows):
        row_flags = _row(reference, limits, first + row, columns, actual[row], figures, row)
        flagged.append(row_flags + row * PATTERNS)
    figures.flagged = torch.cat(flagged)
    return figures


def _row(
    reference: PairReference,
    limits: Limits,
    pattern: int,
    columns: torch.Tensor,
    actual: torch.Tensor,
    figures: Figures,
    row: int,
) -> torch.Tensor:
    """Add one row and return which of its columns are flagged."""
    patterns = torch.full_like(columns, pattern)
    errors = measure(actual, reference.exact(patterns, columns), reference.fmt)
    codes, certain = reference.places(patterns, columns)
    size = errors.ulp.abs()
    finite = errors.finite
    figures.finite += int((codes >= 0).sum())
    flags = ~finite & (errors.classes != int(Class.NONE))
    wrong_zero = errors.classes == int(Class.WRONG_ZERO_SIGN)
    odd = (errors.classes != int(Class.NONE)) & ~wrong_zero
    flags |= finite & (odd | (size >= limits.flag_from))
    for judged, members in enumerate((wrong_zero, wrong_zero & (codes >= 0))):
        _zeros(figures, judged, members.nonzero().flatten(), size, row * PATTERNS)
    for place, limit in enumerate(PLAIN_LIMITS):
        is_open = ~certain & ((size - limit).abs() <= exact.OPEN)
        flags |= finite & is_open
        beyond = (finite & (codes >= 0) & (size > limit) & ~is_open).nonzero().flatten()
        figures.beyond[place] += beyond.numel()
        if beyond.numel() and figures.beyond_first[place] < 0:
            figures.beyond_first[place] = row * PATTERNS + int(beyond[0])
    for code in range(len(REGIONS)):
        members = (finite & (codes == code)).nonzero().flatten()
        if members.numel():
            _region(figures, code, errors.ulp[members], row * PATTERNS + members)
    return flags.nonzero().flatten()


def _zeros(
    figures: Figures, judged: int, members: torch.Tensor, size: torch.Tensor, base: int
) -> None:
    if members.numel() == 0:
        return
    figures.zeros[0, judged] += members.numel()
    if figures.zeros[1, judged] < 0:
        figures.zeros[1, judged] = base + int(members[0])
    largest = float(size[members].max())
    if largest > figures.zero_worst[judged]:
        figures.zero_worst[judged] = largest
        at = members[size[members] == largest]
        figures.zeros[2, judged] = base + int(at[0])


def _region(figures: Figures, code: int, error: torch.Tensor, indices: torch.Tensor) -> None:
    size = error.abs()
    largest = float(size.max())
    if largest > figures.largest[code]:
        figures.largest[code] = largest
        figures.largest_at[code] = int(indices[int((size == largest).nonzero()[0])])
    summary = RegionSummary()
    for part in error.split(LARGEST_BATCH):
        summary.add_errors(part.clone())
    figures.sums[code] += (
        summary.count, summary.signed_sum, summary.small_square_sum, summary.large_square_sum
    )  # fmt: skip
    figures.clipped[code] += summary.clipped
    figures.histogram[code] += summary.histogram
