"""Draw a random sample of inputs, run a kernel on it, and keep the errors of each region.

The sweep of the checks is no sample: its landmarks and its even grid in the tail are not random,
and its points at x and -x go together. Here the inputs of a region are drawn independently, each
float of the region equally likely (with replacement), so that a region's errors are independent
draws from the population that an exhaustive sweep of it would give.

Another argument than x is drawn too: ``dy`` and ``up`` with random sign from the floats of
[2^-6, 2^6), a bias likewise, and then x = RN(s - bias) for a drawn sum s. Pairs whose sum lies in
another region after rounding are drawn again.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import torch

from gelu_verify.formats import Format, tensors
from gelu_verify.kernels.subject import Subject
from gelu_verify.measure.error import Class, Errors, measure
from gelu_verify.measure.regions import REGIONS, TINY_BELOW, Region, Regions
from gelu_verify.operators import Operator, place
from gelu_verify.statistics.distribution import ErrorDistribution
from gelu_verify.statistics.outputs import digest
from gelu_verify.statistics.sample import Sample

#: Draws a region: exact values of fp64 take some 50 µs each, in mpmath.
PER_REGION = 4096
PER_REGION_FP64 = 512
_OTHER = (2.0**-6, 2.0**6)
_WITHOUT_DISTANCE = [int(c) for c in Class if not c.has_distance]


def measure_sample(subject: Subject, seed: int, per_region: int | None = None) -> Sample:
    """Return the errors of a kernel at ``per_region`` inputs of every region.

    One seed gives the same inputs on every machine. Raises KernelFailure as the kernel does.
    """
    count = per_region or default_size(subject.fmt)
    inputs, actual, errors = _measured(subject, seed, count)
    return Sample(
        seed=seed,
        per_region=count,
        inputs_digest=_digest(inputs, subject.fmt),
        regions={name: ErrorDistribution.from_errors(part) for name, part in errors.items()},
        outputs_digest=_digest((actual,), subject.fmt),
    )


def errors_by_region(subject: Subject, per_region: int, seed: int) -> dict[str, np.ndarray]:
    """Return region to signed errors in ULP, NaN for results without a distance, float64 (N,)."""
    return _measured(subject, seed, per_region)[2]


def default_size(fmt: Format) -> int:
    """Return how many inputs of each region a sample of the format has."""
    return PER_REGION_FP64 if fmt.bits == 64 else PER_REGION


def _measured(
    subject: Subject, seed: int, count: int
) -> tuple[tuple[torch.Tensor, ...], torch.Tensor, dict[str, np.ndarray]]:
    """Return the inputs drawn, the kernel's results, and the errors of each region."""
    fmt, operator = subject.fmt, subject.operator
    drawn = draw(operator, subject.formula, fmt, count, np.random.default_rng(seed))
    inputs = tuple(torch.cat(column) for column in zip(*drawn.values(), strict=True))
    actual = subject.run(*inputs)
    errors = measure(actual, operator.exact(inputs, subject.formula, fmt), fmt)
    found = {
        region.value: _signed(errors, slice(i * count, (i + 1) * count))
        for i, region in enumerate(drawn)
    }
    return inputs, actual, found


def draw(
    operator: Operator, formula: str, fmt: Format, count: int, random: np.random.Generator
) -> dict[Region, tuple[torch.Tensor, ...]]:
    """Return ``count`` independent inputs of every region that has a float, each (count,)."""
    regions = Regions.of(formula, fmt, operator.derivative)
    found = {}
    for region, ranges in _ranges(regions, fmt).items():
        kept = [torch.empty(0, dtype=tensors.dtype(fmt)) for _ in operator.arguments]
        while kept[0].numel() < count:
            inputs = _inputs(operator, ranges, fmt, count, random)
            inside = regions.codes(operator.activated(inputs)) == REGIONS.index(region)
            pairs = zip(kept, inputs, strict=True)
            kept = [torch.cat([have, part[inside]])[:count] for have, part in pairs]
        found[region] = tuple(kept)
    return found


def _inputs(
    operator: Operator,
    ranges: tuple[tuple[int, int], ...],
    fmt: Format,
    count: int,
    random: np.random.Generator,
) -> tuple[torch.Tensor, ...]:
    """Return inputs with x, or the sum, from the floats whose ordinals lie in the ranges."""
    x = _uniform(ranges, fmt, count, random)
    if len(operator.arguments) == 1:
        return (x,)
    low, high = (fmt.ordinal(fmt.encode(edge)) for edge in _OTHER)
    other = _uniform(((low, high - 1),), fmt, count, random)
    other = torch.where(torch.from_numpy(random.random(count) < 0.5), other, -other)
    if "bias" in operator.arguments:
        x = tensors.round_float64(x.double() - other.double(), fmt)
        x = x.clamp(-fmt.largest, fmt.largest)
    return (x, other) if place(operator.arguments) == 0 else (other, x)


def _uniform(
    ranges: tuple[tuple[int, int], ...], fmt: Format, count: int, random: np.random.Generator
) -> torch.Tensor:
    """Return floats (count,), each one of the closed ranges of ordinals equally likely."""
    sizes = [last - first + 1 for first, last in ranges]
    place_of = random.integers(0, sum(sizes), count)
    ordinals = np.empty(count, dtype=np.int64)
    for (first, _), size in zip(ranges, sizes, strict=True):
        inside = (place_of >= 0) & (place_of < size)
        ordinals[inside] = first + place_of[inside]
        place_of -= size
    return tensors.from_ordinals(torch.from_numpy(ordinals), fmt)


@lru_cache(maxsize=64)
def _ranges(regions: Regions, fmt: Format) -> dict[Region, tuple[tuple[int, int], ...]]:
    """Return the ordinals of every region's floats as closed ranges; none for empty regions."""
    tiny = 0  # where a format has no float below 2^-12 but the zeros
    if fmt.smallest_subnormal <= TINY_BELOW:
        tiny = fmt.ordinal(fmt.encode(TINY_BELOW)) - 1
    ends = _last_ordinals(regions, fmt)
    starts = [-fmt.largest_bits, *(end + 1 for end in ends[:-1])]
    found: dict[Region, tuple[tuple[int, int], ...]] = {}
    for region, first, last in zip(REGIONS, starts, ends, strict=False):
        parts = [(first, last)]
        if region is Region.CENTRE:
            parts = [(first, -tiny - 1), (tiny + 1, last)]
        kept = tuple(part for part in parts if part[0] <= part[1])
        if kept:
            found[region] = kept
    return found | {Region.TINY: ((-tiny, tiny),)}


def _last_ordinals(regions: Regions, fmt: Format) -> list[int]:
    """Return the last ordinal of each range from ZERO to SATURATED, by bisection of the codes."""
    centre = REGIONS.index(Region.CENTRE)
    codes = torch.arange(len(REGIONS) - 2)
    low = torch.full_like(codes, -fmt.largest_bits - 1)
    high = torch.full_like(codes, fmt.largest_bits)
    while bool((low < high).any()):
        middle = (low | high) - ((low ^ high) >> 1)  # the mean, rounded up, without overflow
        code = regions.codes(tensors.from_ordinals(middle, fmt).double())
        code[code == REGIONS.index(Region.TINY)] = centre
        inside = code <= codes
        low, high = torch.where(inside, middle, low), torch.where(inside, high, middle - 1)
    return [*low.tolist(), fmt.largest_bits]


def _digest(values: tuple[torch.Tensor, ...], fmt: Format) -> str:
    return digest(b"".join(tensors.to_bits(part, fmt).numpy().tobytes() for part in values))


def _signed(errors: Errors, part: slice) -> np.ndarray:
    """Return the signed errors of results due to be numbers; NaN for those without a distance."""
    classes = errors.classes[part]
    lost = torch.isin(classes, torch.tensor(_WITHOUT_DISTANCE, dtype=classes.dtype))
    ulp = torch.where(lost, torch.nan, errors.ulp[part])
    return ulp[errors.finite[part] | lost].numpy()
