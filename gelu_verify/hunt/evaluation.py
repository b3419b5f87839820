"""Run the kernel on points of a hunt, measure what is promising, remember the worst.

A point is a row of ordinals (int64), one for each argument, x last; ordinals of neighbouring values
differ by one, so a neighbourhood is a range.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import torch

from gelu_verify.elements import Elements
from gelu_verify.formats import tensors
from gelu_verify.hunt.climbing import UNSCORED
from gelu_verify.kernels.subject import Subject
from gelu_verify.measure.error import Class, Errors, measure
from gelu_verify.measure.regions import REGIONS, Region, Regions
from gelu_verify.measure.summary import Sample, worse

#: Points the kernel gets at once are filled up to a multiple of this, so that none of them falls
#: into the remainder of a vector loop, which a kernel may compute by another route.
LANES = 64
_NANS = (Class.NAN_FOR_NUMBER, Class.NUMBER_FOR_NAN)


@dataclass
class Worst:
    """The worst element of each region, and the first NaN (or missing NaN) of all."""

    by_region: dict[Region, Sample] = field(default_factory=dict)
    by_class: dict[Class, tuple[Region, Sample]] = field(default_factory=dict)


class Evaluator:
    """The kernel as a function from points to scores: log2 of the error in ULP."""

    def __init__(self, subject: Subject, generator: torch.Generator) -> None:
        self.subject = subject
        self.regions = Regions.of(subject.formula, subject.fmt, subject.operator.derivative)
        self.worst = Worst()
        self.kernel_inputs = 0
        self.measured = 0
        self._generator = generator

    @property
    def precise_only(self) -> bool:
        """Whether exact values come from mpmath alone, some 100 µs each."""
        return self.subject.fmt.bits == 64

    def scores(self, points: torch.Tensor, limit: int) -> torch.Tensor:
        """Return the score of every point (N, arguments), float64 (N,); ``UNSCORED`` for the rest.

        In fp64 at most ``limit`` points are measured: half of them are those with the largest
        difference from the float64 reference, which is off by up to some hundred ULP there, the
        others are drawn at random. Elsewhere all are measured.
        """
        inputs = self._inputs(points)
        actual = self._actual(inputs)
        chosen = torch.arange(len(points))
        if self.precise_only and len(points) > limit:
            chosen = self._promising(inputs, actual, limit)
        inputs, actual = tuple(part[chosen] for part in inputs), actual[chosen]
        s = self.subject
        exact = s.operator.exact(inputs, s.formula, s.fmt)
        errors = measure(actual, exact, s.fmt)
        self.measured += len(chosen)
        self._remember(Elements(s.operator, s.formula, s.fmt, inputs, actual, errors))
        scores = torch.full((len(points),), UNSCORED, dtype=torch.float64)
        scores[chosen] = _score(errors)
        return scores

    def _inputs(self, points: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return tuple(tensors.from_ordinals(part, self.subject.fmt) for part in points.unbind(1))

    def _actual(self, inputs: tuple[torch.Tensor, ...]) -> torch.Tensor:
        count = len(inputs[0])
        self.kernel_inputs += count
        index = torch.arange(-(-count // LANES) * LANES) % count
        return self.subject.run(*(part[index] for part in inputs))[:count]

    def _promising(
        self, inputs: tuple[torch.Tensor, ...], actual: torch.Tensor, limit: int
    ) -> torch.Tensor:
        """Return the indices of ``limit`` points: the most suspicious ones, and random ones."""
        near = self.subject.operator.approximate(inputs, self.subject.formula)
        difference = (actual.double() - near).abs()
        doubt = difference / near.abs().clamp(min=self.subject.fmt.smallest_normal)
        doubt = doubt.nan_to_num(nan=torch.inf, posinf=torch.inf)
        doubt[actual.double() == near] = 0.0
        most = torch.topk(doubt, limit // 2).indices
        rest = torch.randperm(len(near), generator=self._generator)[: limit - limit // 2]
        return torch.unique(torch.cat([most, rest]))

    def _remember(self, elements: Elements) -> None:
        errors = elements.errors
        codes = self.regions.codes(elements.x)
        size = torch.where(_sized(errors), errors.ulp.abs(), -1.0)
        for code in codes.unique().tolist():
            members = (codes == code).nonzero().flatten()
            index = int(members[size[members].argmax()])
            if size[index] >= 0:
                region = REGIONS[code]
                sample = _sample(elements, index)
                found = worse(self.worst.by_region.get(region), sample)
                assert found is not None
                self.worst.by_region[region] = found
        for cls in Class:
            hits = (errors.classes == int(cls)).nonzero().flatten()
            if cls in _NANS and cls not in self.worst.by_class and hits.numel():
                index = int(hits[0])
                region = REGIONS[int(codes[index])]
                self.worst.by_class[cls] = (region, _sample(elements, index))


def _score(errors: Errors) -> torch.Tensor:
    """Return log2 of the error in ULP; an error of 0 counts as 2^-60."""
    score = torch.log2(errors.ulp.abs().clamp(min=2.0**-60))
    return torch.where(_sized(errors), score, UNSCORED)


def _sized(errors: Errors) -> torch.Tensor:
    """Return which errors have a size, bool (N,).

    Also next to overflow, where an infinity, or none, may be half an ULP away from what is due.
    """
    overflow = [errors.classes == int(c) for c in (Class.INFINITY_FOR_FINITE, Class.LOST_INFINITY)]
    return (errors.finite | overflow[0] | overflow[1]) & ~torch.isnan(errors.ulp)


def _sample(elements: Elements, index: int) -> Sample:
    fmt = elements.fmt
    patterns = tuple(int(tensors.to_bits(part[index], fmt)) for part in elements.inputs)
    actual = int(tensors.to_bits(elements.actual[index], fmt))
    return Sample(patterns, actual, float(elements.errors.ulp[index]))
