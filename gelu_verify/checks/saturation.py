"""Saturation: where a kernel starts to return exactly 0 and exactly x, and what that costs.

Kernels guard |x| > 6 (or erf's argument), or reach the same point because 1 + erf has become 0.
Whether the format could have held more is a fact of the format, and stated beside it; whether it
is allowed is for the contract, so this check only reports.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch

from gelu_verify import describe
from gelu_verify.checks.case import Case, Outcome
from gelu_verify.elements import Elements
from gelu_verify.exhaustive.census import Census
from gelu_verify.formats import tensors
from gelu_verify.operators import at_neutral
from gelu_verify.records import FindingStatus, Saturation
from gelu_verify.report.numbers import figure

_REFINE_POINTS = 4096


@dataclass(frozen=True)
class _Edge:
    """A threshold of the kernel and the largest error on its far side."""

    start: float | None
    absolute: float
    ulp: float

    @classmethod
    def at(cls, start: float, saturated: Elements) -> _Edge:
        """Return the edge at ``start``, its cost the largest among saturated elements."""
        errors = saturated.errors
        absolute, ulp = errors.absolute[errors.finite], errors.ulp[errors.finite].abs()
        return cls(start, float(absolute.max()), float(ulp.max()))


def run(case: Case) -> Outcome:
    """Find both thresholds and state the cost.

    From a census they are exact; else found on the sweep and refined between its points.
    """
    # Any other dy, bias or up moves the point at which the result becomes 0.
    chosen = torch.isfinite(case.elements.x) & case.elements.neutral
    elements = case.elements.select(chosen)
    zero = _edge(case, elements, side=-1)
    identity = _edge(case, elements, side=+1)
    record = Saturation(
        zero_from=zero.start,
        zero_needed_from=case.regions.zero_threshold,
        zero_cost_absolute=zero.absolute,
        zero_cost_ulp=zero.ulp,
        identity_from=identity.start,
        identity_needed_from=case.regions.identity_threshold,
        identity_cost_ulp=identity.ulp,
        sentence=_sentence(case, zero, identity),
    )
    finding = case.finding("saturation", FindingStatus.NOTED, record.sentence)
    return Outcome([finding], {"saturation": record})


def _saturated(inputs: tuple[torch.Tensor, ...], actual: torch.Tensor, side: int) -> torch.Tensor:
    """Return where the output is exactly 0 (side -1) or exactly x or dy (side +1).

    The other argument is neutral, so that the first one is what is passed through far right.
    """
    return actual.double() == (0.0 if side < 0 else inputs[0].double())


def _edge(case: Case, elements: Elements, side: int) -> _Edge:
    if case.census is not None:
        return _edge_of_census(case, case.census, side)
    part = elements.select(elements.x < 0 if side < 0 else elements.x > 0)
    hits = _saturated(part.inputs, part.actual, side)
    inside = _run_length(hits if side < 0 else hits.flip(0))
    if inside == 0:
        return _Edge(None, 0.0, 0.0)
    total = hits.numel()
    members = torch.arange(total) < inside if side < 0 else torch.arange(total) >= total - inside
    found = part.select(members)
    start = float(found.x[-1] if side < 0 else found.x[0])
    if inside < total and not case.sweep.exhaustive and case.input_bits is None:
        beyond = float(part.x[inside] if side < 0 else part.x[total - inside - 1])
        start, extra = _refine(case, start, beyond, side)
        found = extra or found
    return _Edge.at(start, found)


def _edge_of_census(case: Case, census: Census, side: int) -> _Edge:
    """Return the threshold that every input shows: next outwards to the last not saturated."""
    fmt = case.subject.fmt
    magnitude = max((census.zero_reach if side < 0 else census.identity_reach) + 1, 1)
    if magnitude > fmt.largest_bits:
        return _Edge(None, 0.0, 0.0)
    x = fmt.decode(magnitude | (fmt.sign_bit if side < 0 else 0))
    one_x = torch.tensor([x], dtype=case.subject.dtype)
    inputs = at_neutral(case.subject.operator.arguments, one_x)
    # The nearest to the other side costs the most, as in _refine.
    actual = -torch.zeros_like(one_x) if side < 0 else inputs[0]
    return _Edge.at(x, case.measured(inputs, actual))


def _run_length(hits: torch.Tensor) -> int:
    """Return how many leading elements are True."""
    misses = (~hits).nonzero()
    return int(misses[0]) if misses.numel() else hits.numel()


def _refine(case: Case, inner: float, beyond: float, side: int) -> tuple[float, Elements | None]:
    """Narrow the threshold between a saturated point and its unsaturated neighbour.

    Returns the last saturated input found, and that element if it was run.
    """
    fmt = case.subject.fmt
    measured = None
    low, high = (fmt.ordinal(fmt.encode(v)) for v in (inner, beyond))
    while abs(high - low) > 1:
        count = min(abs(high - low) + 1, _REFINE_POINTS)
        weights = torch.arange(count)
        order = low + (high - low) * weights // (count - 1)
        x = tensors.from_ordinals(order, fmt)
        inputs = at_neutral(case.subject.operator.arguments, x)
        actual = case.subject.run(*inputs)
        inside = _run_length(_saturated(inputs, actual, side))
        if inside in (0, count):
            break  # not reproducible between calls: the conduct check says so
        low, high = int(order[inside - 1]), int(order[inside])
        # The nearest to the other side costs the most: |f| and x - f shrink outwards.
        edge = tuple(part[inside - 1 : inside] for part in inputs)
        measured = edge, actual[inside - 1 : inside]
    return fmt.decode(fmt.from_ordinal(low)), case.measured(*measured) if measured else None


def _sentence(case: Case, zero: _Edge, identity: _Edge) -> str:
    fmt = case.subject.fmt
    unit = case.subject.operator.arguments[0]
    needed_zero = describe.value(case.regions.zero_threshold, fmt)
    needed_identity = describe.value(case.regions.identity_threshold, fmt)
    if zero.start is None:
        left = "never returns 0 on the far left"
    else:
        left = f"0 from {describe.value(zero.start, fmt)} down ({fmt.name} needs {needed_zero})"
        if zero.start > case.regions.zero_threshold:
            left += f": loses {zero.absolute:.4g}, {figure(zero.ulp)} ULP"
        else:
            left += ": free"
    if identity.start is None:
        return f"{left}; never returns {unit} on the far right"
    right = f"{unit} from {describe.value(identity.start, fmt)} up (needs {needed_identity})"
    cost = "free" if identity.ulp <= 0.5 else f"costs {figure(identity.ulp)} ULP"
    return f"{left}; {right}: {cost}"
