"""Sweeps of the argument x: every bit pattern where that is possible, else stratified by binade.

A sweep is a set of bit patterns without repeats, ascending in x, so that each point counts once
and neighbours in the tensor are neighbours on the real line. Nothing is drawn from unit normals:
every binade from the smallest subnormal to the largest finite value has its points.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from enum import StrEnum

import torch

from gelu_verify.errors import EmptySampleError
from gelu_verify.formats import Format, tensors
from gelu_verify.inputs.special import landmarks, special_bits
from gelu_verify.operators import NEUTRAL, place


class Depth(StrEnum):
    """How many points a sweep takes where it cannot take all."""

    QUICK = "quick"
    STANDARD = "standard"
    EXHAUSTIVE = "exhaustive"


#: Enough copies of a replayed input for every vector width.
_REPLAY_LENGTH = 64


@dataclass(frozen=True)
class _Density:
    per_binade: int
    tail_points: int
    around_landmark: int


_DENSITIES = {
    (32, Depth.QUICK): _Density(48, 20_000, 16),
    (32, Depth.STANDARD): _Density(768, 300_000, 512),
    # fp64 is compared in mpmath, some 50 µs a point.
    (64, Depth.QUICK): _Density(1, 1_000, 2),
    (64, Depth.STANDARD): _Density(1, 4_000, 4),
}


@dataclass(frozen=True)
class Sweep:
    """Inputs of one operator in one format.

    inputs: a tensor (N,) of the format's dtype per argument; the swept one (x, gate) ascends.
    exhaustive: every bit pattern of x is there. seed: of the random choices, 0 in CI.
    swept: which of the inputs that is.
    """

    name: str
    fmt: Format
    inputs: tuple[torch.Tensor, ...]
    exhaustive: bool
    seed: int
    swept: int = 0

    @property
    def x(self) -> torch.Tensor:
        """The argument that the sweep runs through."""
        return self.inputs[self.swept]

    @property
    def digest(self) -> str:
        """SHA-256 of the input patterns, 16 hex digits: equal inputs, equal digest."""
        state = hashlib.sha256()
        for part in self.inputs:
            state.update(tensors.to_bits(part, self.fmt).numpy().tobytes())
        return state.hexdigest()[:16]


def build(
    fmt: Format,
    arguments: tuple[str, ...],
    depth: Depth,
    seed: int = 0,
    hard: tuple[tuple[int, ...], ...] = (),
) -> Sweep:
    """Return the sweep of an elementwise operator with one argument or two.

    With two, every x (or gate) is taken twice: with the neutral other argument (dy = 1, up = 1,
    bias = -0), and with a seeded one of random sign, significand and exponent, the largest and the
    smallest values of the format included; a bias or an ``up`` is NaN or infinite now and then.
    hard: input patterns to take as well (``inputs.hard_cases``), one for each argument.
    """
    exhaustive = fmt.bits <= 16
    if depth is Depth.EXHAUSTIVE and not exhaustive:
        depth = Depth.STANDARD  # a sweep in memory; it says so, and never that it is exhaustive
    x = _every_pattern(fmt) if exhaustive else _stratified(fmt, depth, seed)
    if x.numel() == 0:
        raise EmptySampleError("sweep: got no inputs, expected at least one.")
    name = f"{Depth.EXHAUSTIVE if exhaustive else depth}"
    if len(arguments) == 1:
        return Sweep(name, fmt, _merged(fmt, (x,), hard, 0), exhaustive, seed)
    swept = place(arguments)
    name_of_other = arguments[1 - swept]
    other = _others(fmt, x.numel(), seed, NEUTRAL[name_of_other], name_of_other != "dy")
    twice = x.repeat_interleave(2)
    inputs = (twice, other) if swept == 0 else (other, twice)
    return Sweep(name, fmt, _merged(fmt, inputs, hard, swept), exhaustive, seed, swept)


def _merged(
    fmt: Format, inputs: tuple[torch.Tensor, ...], hard: tuple[tuple[int, ...], ...], swept: int
) -> tuple[torch.Tensor, ...]:
    """Return inputs with those of ``hard`` that are not among them, each at its place in x."""
    bits = [tensors.to_bits(part, fmt) for part in inputs]
    new = [
        patterns
        for patterns in hard
        if not torch.stack(
            [part == tensors.signed(p, fmt) for part, p in zip(bits, patterns, strict=True)]
        )
        .all(0)
        .any()
    ]
    if not new:
        return inputs
    parts = zip(inputs, zip(*new, strict=True), strict=True)
    joined = [torch.cat([part, tensors.from_patterns(list(more), fmt)]) for part, more in parts]
    # Stable sorts: NaNs come first, -0 before +0, and what was there keeps its order.
    x = joined[swept].double()
    order = torch.argsort((~torch.signbit(x)).long(), stable=True)
    order = order[torch.argsort(x[order], stable=True)]
    order = order[torch.argsort((~torch.isnan(x[order])).long(), stable=True)]
    return tuple(part[order] for part in joined)


def replay(fmt: Format, patterns: tuple[tuple[int, ...], ...], swept: int = 0) -> Sweep:
    """Return a sweep of given inputs only, repeated so that they fill whole vectors and more."""
    if not patterns:
        raise EmptySampleError("replay: got no inputs, expected at least one.")
    times = -(-_REPLAY_LENGTH // len(patterns))
    columns = [
        tensors.from_patterns(list(column) * times, fmt) for column in zip(*patterns, strict=True)
    ]
    return Sweep("replay", fmt, tuple(columns), exhaustive=False, seed=0, swept=swept)


def _every_pattern(fmt: Format) -> torch.Tensor:
    """Return all 2^N values, NaNs first, then ascending from -inf to +inf."""
    values = tensors.from_bits(torch.arange(1 << fmt.bits), fmt)
    wide = values.double()
    # -0 and +0 share an ordinal; the sign puts -0 first.
    order = torch.argsort(tensors.ordinals(values, fmt) * 2 + (~torch.signbit(wide)).long())
    nans_first = torch.argsort((~torch.isnan(wide[order])).long(), stable=True)
    return values[order[nans_first]]


def _stratified(fmt: Format, depth: Depth, seed: int) -> torch.Tensor:
    """Return points of every binade, of the left tail, around every landmark, and the specials."""
    density = _DENSITIES[(fmt.bits, depth)]
    generator = torch.Generator().manual_seed(seed)
    span = 1 << (fmt.precision - 1)
    binades = torch.arange(0, fmt.largest_bits + 1, span)
    # The lowest "binade" holds all subnormals; each of their own binades gets points below.
    offsets = torch.randint(0, span, (binades.numel(), density.per_binade), generator=generator)
    magnitudes = [(binades[:, None] + offsets).flatten(), binades, binades + span - 1]
    for power in range(fmt.precision - 1):
        low = 1 << power
        picks = torch.randint(0, low, (density.per_binade,), generator=generator)
        magnitudes.append(torch.unique(low + picks))
    positive = torch.cat(magnitudes).clamp(max=fmt.largest_bits)
    parts = [positive, -positive, _tail(fmt, density.tail_points)]
    around = torch.arange(-density.around_landmark, density.around_landmark + 1)
    for landmark in landmarks(fmt):
        parts.append(fmt.ordinal(fmt.encode(landmark)) + around)
    order = torch.unique(torch.cat(parts)).clamp(-fmt.largest_bits, fmt.largest_bits)
    finite = tensors.from_ordinals(torch.unique(order), fmt)
    # NaNs and infinities at both ends, and -0, which shares its ordinal with +0.
    special = tensors.from_patterns(special_bits(fmt), fmt)
    special = special[~torch.isfinite(special) | ((special == 0) & torch.signbit(special))]
    nan, rest = special[torch.isnan(special)], special[~torch.isnan(special)]
    middle = torch.cat([rest, finite])
    return torch.cat([nan, middle[torch.argsort(middle.double(), stable=True)]])


def _tail(fmt: Format, count: int) -> torch.Tensor:
    """Return ordinals evenly spaced in x from -3 to beyond the zero threshold."""
    left = {64: -39.5, 32: -14.7}[fmt.bits]
    points = torch.linspace(left, -3.0, count, dtype=torch.float64)
    return tensors.ordinals(points if fmt.bits == 64 else points.float(), fmt)


def _others(fmt: Format, count: int, seed: int, neutral: float, specials: bool) -> torch.Tensor:
    """Return the other argument (2·count,): the neutral and a random value in turn.

    specials: whether some of the latter are NaN and infinite.
    """
    generator = torch.Generator().manual_seed(seed + 1)
    largest = fmt.largest_bits
    spread = torch.randint(1, largest + 1, (count,), generator=generator)
    near_one = fmt.encode(1.0) + torch.randint(
        -6 << (fmt.precision - 1), 6 << (fmt.precision - 1), (count,), generator=generator
    )
    take_spread = torch.rand(count, generator=generator) < 0.25
    magnitude = torch.where(take_spread, spread, near_one).clamp(1, largest)
    sign = torch.randint(0, 2, (count,), generator=generator) * 2 - 1
    # The extremes meet every part of the line (the first x are NaNs), each with both signs.
    for start, extreme in ((0, 1), (8, largest)):
        magnitude[start::16] = extreme
        sign[start::32], sign[start + 16 :: 32] = 1, -1
    random = tensors.from_ordinals(sign * magnitude, fmt)
    if specials:
        for start, number in ((3, torch.nan), (19, torch.inf), (35, -torch.inf)):
            random[start::48] = number
    nothing = tensors.from_patterns([fmt.encode(neutral)], fmt).expand(count)
    return torch.stack([nothing, random], dim=1).flatten()
