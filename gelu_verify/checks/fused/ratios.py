"""Error over bound, element by element: what is within, what breaks, and where it is worst.

Closed elements have a finite exact value and a finite bound; ``ratio = |actual - y| / bound``, and
a ratio above 1 breaks. Open ones (see :mod:`gelu_verify.bounds.bounded`) are judged by kind: NaN
for NaN, infinity for infinity. Comparisons are written so that NaN breaks.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import mpmath
import numpy as np
import torch
from torch import Tensor

from gelu_verify import describe
from gelu_verify.bounds import Arithmetic, Bounded
from gelu_verify.contracts import Contract, MinusInfinity
from gelu_verify.formats import Format, tensors
from gelu_verify.measure import histogram
from gelu_verify.operators.fused import FusedOperator, Undefined
from gelu_verify.records import BoundAccuracy, CaseAccuracy, FusedPoint
from gelu_verify.report.numbers import figure

#: Gives the exact value of one element of the result, as an mpmath number.
Precise = Callable[[tuple[int, ...]], Any]

#: Elements, worst first, that are measured again in mpmath: float64 is no reference for fp64.
_AGAIN = {64: 32, 32: 4, 16: 4}
_QUANTILES = (0.5, 0.9, 0.99, 0.999)


@dataclass
class Ratios:
    """What one or more cases gave; ``add`` joins others."""

    elements: int = 0
    open: int = 0
    broken: int = 0
    informative: int = 0
    max_ratio: float = 0.0
    worst: FusedPoint | None = None
    dominant: Counter[str] = field(default_factory=Counter)
    counts: np.ndarray = field(
        default_factory=lambda: np.zeros(histogram.BIN_COUNT, dtype=np.int64)
    )
    by_case: list[CaseAccuracy] = field(default_factory=list)
    faults: dict[str, str] = field(default_factory=dict)

    @property
    def cases(self) -> int:
        """How many cases were judged."""
        return len(self.by_case)

    def add(self, other: Ratios) -> None:
        """Join the figures of other cases."""
        self.elements += other.elements
        self.open += other.open
        self.broken += other.broken
        self.informative += other.informative
        if other.worst is not None and (self.worst is None or other.max_ratio > self.max_ratio):
            self.max_ratio, self.worst = other.max_ratio, other.worst
        self.dominant.update(other.dominant)
        self.counts += other.counts
        self.by_case += other.by_case
        self.faults |= other.faults

    def told(self) -> tuple[str, str] | None:
        """Return the case that breaks worst, and a sentence on all that break; None if none does.

        One fault shows in many cases; the others are in the record.
        """
        if not self.faults:
            return None
        worst = self.worst.case if self.worst and self.worst.case in self.faults else None
        case = worst or next(iter(self.faults))
        others = f"{len(self.faults)} of {self.cases} cases break; " if self.cases > 1 else ""
        return case, others + self.faults[case]

    def as_record(self, arithmetic: Arithmetic) -> BoundAccuracy:
        """Return the saved form."""
        total = max(sum(self.dominant.values()), 1)
        return BoundAccuracy(
            cases=self.cases,
            elements=self.elements,
            open=self.open,
            broken=self.broken,
            informative=self.informative,
            max_ratio=self.max_ratio,
            quantiles={str(q): histogram.quantile(self.counts, q) for q in _QUANTILES},
            worst=self.worst,
            dominant={name: count / total for name, count in self.dominant.most_common()},
            arithmetic=arithmetic.sentence,
            by_case=tuple(self.by_case),
        )


def judged_result(
    operator: FusedOperator,
    formula: str,
    inputs: tuple[Tensor, ...],
    actual: Tensor,
    arithmetic: Arithmetic,
    case: str,
) -> Ratios:
    """Return the ratios of an operator's result for its inputs, against mpmath and a rival formula.

    The contract and the format are those of the arithmetic.
    """

    def precise(index: tuple[int, ...]) -> Any:
        return operator.precise(inputs, formula, index)

    rival = None
    if operator.has_formula:
        other = "erf" if formula == "sigmoid" else "sigmoid"
        rival = operator.forward(inputs, other, arithmetic).value
    undefined = operator.undefined(inputs) if isinstance(operator, Undefined) else None
    exact = operator.forward(inputs, formula, arithmetic)
    fmt, contract = arithmetic.fmt, arithmetic.contract
    return judged(actual, exact, fmt, contract, case, precise, rival, undefined=undefined)


def judged(
    actual: Tensor,
    exact: Bounded,
    fmt: Format,
    contract: Contract,
    case: str,
    precise: Precise | None = None,
    rival: Tensor | None = None,
    kinds: bool = True,
    undefined: Tensor | None = None,
) -> Ratios:
    """Return the ratios of one result, of the shape of ``exact``, and what breaks its bound.

    rival: exact values of another formula. Elements at which it is within the bound, too, tell
    nothing about the activation (``f(s) = s``, or 0): they are no evidence, but must hold.
    kinds: whether open elements are judged; those of a gradient, at infinities, are not.
    undefined: open elements without a value, at which a kernel gives NaN or 0.
    """
    got, y = actual.detach().double(), exact.value
    slack = exact.total
    allowed = slack + exact.own
    closed = torch.isfinite(y) & torch.isfinite(allowed)
    error = (got - y).abs()
    overflows = y.abs() + allowed > fmt.largest * (1 + 2.0 ** (-fmt.precision - 1))
    overflowed = overflows & torch.isinf(got) & (got.sign() == y.sign())
    within = (error <= allowed) | overflowed
    wrong = _wrong_kind(got, y, contract) if kinds else torch.zeros_like(closed)
    if undefined is not None:
        wrong = wrong | (undefined & ~(torch.isnan(got) | (got == 0)))
    broken = torch.where(closed, ~within, wrong)
    # Where the reference itself may be off by as much as the kernel, only mpmath can tell.
    ratio = torch.where(closed & ~overflowed, error / allowed, 0.0).nan_to_num(
        nan=torch.inf, posinf=torch.inf
    )
    if precise is not None:
        usable = closed & ~overflowed & torch.isfinite(got)
        score = torch.where(usable, error / slack, -1.0)
        _again(actual, score, ratio, slack, broken, fmt, precise)
    useful = closed & (slack < y.abs())
    if rival is not None:
        useful = useful & ((rival - y).abs() > allowed)
    return _gathered(actual, exact, ratio, closed, broken, useful, fmt, case)


def _wrong_kind(got: Tensor, y: Tensor, contract: Contract) -> Tensor:
    """Return which open elements have the wrong kind of value."""
    wrong = torch.where(torch.isnan(y), ~torch.isnan(got), torch.isinf(y) & ~(got == y))
    if contract.minus_infinity is MinusInfinity.ZERO:
        # f's limit at -inf, which is -0. A sum that overflows on the way may well be NaN.
        wrong = wrong | ((y == 0) & torch.signbit(y) & torch.isnan(got))
    return wrong


def _again(
    actual: Tensor,
    score: Tensor,
    ratio: Tensor,
    slack: Tensor,
    broken: Tensor,
    fmt: Format,
    precise: Precise,
) -> None:
    """Replace ratios and verdicts of the elements of the largest score by those from mpmath."""
    flat = score.flatten()
    for position in flat.topk(min(_AGAIN[fmt.bits], flat.numel())).indices.tolist():
        if float(flat[position]) < 0:
            continue
        index = _index(position, ratio.shape)
        exact = precise(index)
        with mpmath.workprec(256):
            error = float(abs(mpmath.mpf(float(actual[index].double())) - exact))
        allowed = float(slack[index])
        ratio[index] = error / allowed if allowed else (0.0 if error == 0.0 else torch.inf)
        broken[index] = not (error <= allowed)


def _gathered(
    actual: Tensor,
    exact: Bounded,
    ratio: Tensor,
    closed: Tensor,
    broken: Tensor,
    useful: Tensor,
    fmt: Format,
    case: str,
) -> Ratios:
    elements = int(closed.sum())
    found = Ratios(elements=elements, open=closed.numel() - elements, broken=int(broken.sum()))
    if elements:
        found.counts = histogram.count(ratio[closed].clamp(max=2.0**60))
        found.informative = int(useful.sum())
        found.dominant = _dominant(exact, closed)
        found.max_ratio = float(ratio[closed].max())
    if closed.numel():
        score = torch.where(closed, ratio, -1.0)
        worst = int(torch.where(broken, score.clamp(min=0.0) + 1.0, score).flatten().argmax())
        found.worst = _point(actual, exact, ratio, _index(worst, ratio.shape), fmt, case)
    found.by_case.append(
        CaseAccuracy(
            case=case,
            elements=elements,
            open=found.open,
            broken=found.broken,
            informative=found.informative,
            max_ratio=found.max_ratio,
        )
    )
    if found.broken and found.worst is not None:
        found.faults[case] = _sentence(found, broken.numel())
    return found


def _sentence(found: Ratios, total: int) -> str:
    point = found.worst
    assert point is not None
    term = max(point.terms, key=lambda name: point.terms[name], default="no term")
    return (
        f"{found.broken:,} of {total:,} elements break their bound; worst at "
        f"{list(point.index)}: got {point.actual}, exact {point.exact}, "
        f"{figure(point.ratio)} times the bound {point.bound:.3g} (mostly {term})"
    )


def _dominant(exact: Bounded, closed: Tensor) -> Counter[str]:
    names = list(exact.slack)
    stacked = torch.stack([exact.slack[name].expand_as(exact.value) for name in names])
    largest = stacked.argmax(0)[closed]
    found = torch.bincount(largest, minlength=len(names)).tolist()
    return Counter({name: count for name, count in zip(names, found, strict=True) if count})


def _point(
    actual: Tensor, exact: Bounded, ratio: Tensor, index: tuple[int, ...], fmt: Format, case: str
) -> FusedPoint:
    got = actual.detach()[index]
    y, bound = float(exact.value[index]), float(exact.total[index])
    pattern = int(tensors.to_bits(got.reshape(1), fmt))
    return FusedPoint(
        case=case,
        index=index,
        exact=f"{y:.17g}",
        actual=describe.value(float(got.double()), fmt),
        actual_bits=describe.bits(pattern, fmt),
        error=float((got.double() - y).abs()),
        bound=bound,
        ratio=float(ratio[index]),
        terms={
            name: float(part.expand_as(exact.value)[index]) for name, part in exact.slack.items()
        },
    )


def _index(position: int, shape: torch.Size) -> tuple[int, ...]:
    return tuple(int(i) for i in np.unravel_index(position, tuple(shape)))
