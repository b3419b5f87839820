"""The error of the fast reference at every input of a shard.

With F the float64 result and the model of :mod:`.taylor` at the input,

    D = ((F - hi) - slope·t) - P(t)   is F - exact,   F - D   is the exact value,

so ``e = |D/(F - D)|``. F - hi is exact (Sterbenz) while F is within a factor 2 of hi, which fails
only where the error is gross anyway; slope·t is exact; the two other subtractions lose at most
2^-53·(2|D| + |P|), the |P| counted in the model. So the true relative error is at most
``e·(1 + 2^-40) + model.error``, which is the ``upper`` here; ``seen`` is e. Where no model is
narrow enough (next to the zero of the derivative), blocks of 8 inputs go to Arb one by one.

Results are exactly mergeable: counts add, of two peaks the higher one stays, of two equal ones
that with the smaller bit pattern. A shard is always cut the same way, so the record does not depend
on who did which shard when.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

import numpy as np
import torch

from gelu_verify.reference import arb, fast
from gelu_verify.reference.certificate import taylor
from gelu_verify.reference.certificate.zones import FP32, SMALLEST_EXPONENT, Shard, point
from gelu_verify.reference.optional import load

Evaluate = Callable[[torch.Tensor], torch.Tensor]

_DIRECT = 8
_GROW_AFTER = 64
_SCALE = 2.0**53
_ROUNDINGS = 1.0 + 2.0**-40


@dataclass(frozen=True)
class Result:
    """What a set of inputs has shown; errors are relative, in units of 2^-53.

    count: inputs looked at; models: blocks with a Taylor model; direct: inputs given to Arb.
    upper: the largest proven upper bound, -1 where none applies, at the pattern upper_bits.
    seen: the largest error without the model's, at seen_bits; slack: the largest model error.
    """

    count: int = 0
    models: int = 0
    direct: int = 0
    upper: float = -1.0
    upper_bits: int = 0
    seen: float = -1.0
    seen_bits: int = 0
    slack: float = 0.0

    def merge(self, other: Result) -> Result:
        """Return the result of both sets together."""
        upper = _higher((self.upper, self.upper_bits), (other.upper, other.upper_bits))
        seen = _higher((self.seen, self.seen_bits), (other.seen, other.seen_bits))
        return Result(
            self.count + other.count,
            self.models + other.models,
            self.direct + other.direct,
            *upper,
            *seen,
            max(self.slack, other.slack),
        )

    def as_dict(self) -> dict[str, Any]:
        """Return the fields by name."""
        return asdict(self)


class Block(NamedTuple):
    """Magnitude bits [first, first + length), and the model that holds there."""

    first: int
    length: int
    model: taylor.Model | None


def reference(formula: str, order: int) -> Evaluate:
    """Return the fast reference of a function, looked up at the call (tests replace it)."""
    if order == 0:
        return lambda x: fast.gelu(x, formula)
    return lambda x: fast.derivative(x, formula)


def examine(shard: Shard) -> Result:
    """Return the result of one shard."""
    total = Result()
    evaluate = reference(shard.formula, shard.order)
    if shard.method == "size":
        for first in range(shard.first, shard.stop, taylor.MAX_BLOCK):
            bits = patterns(first, min(taylor.MAX_BLOCK, shard.stop - first), shard.negative)
            total = total.merge(_small(bits, evaluate))
        return total
    with taylor.arithmetic():
        for batch in _batches(blocks(shard)):
            measure = _direct if batch[0].model is None else _modelled
            total = total.merge(measure(shard, batch, evaluate))
    return total


def blocks(shard: Shard) -> Iterator[Block]:
    """Divide a shard into blocks: halved until a model fits, doubled again after 64 that did."""
    size, run, first = taylor.MAX_BLOCK, 0, shard.first
    while first < shard.stop:
        count = min(size, shard.stop - first)
        ends = point(first, shard.negative), point(first + count - 1, shard.negative)
        model = taylor.model(shard.formula, shard.order, *ends)
        if model is None and count > _DIRECT:
            size, run = max(_DIRECT, size // 2), 0
            continue
        yield Block(first, count, model)
        first, run = first + count, run + 1
        if run == _GROW_AFTER and size < taylor.MAX_BLOCK:
            size, run = 2 * size, 0


def patterns(first: int, count: int, negative: bool) -> np.ndarray:
    """Return ``count`` consecutive bit patterns, uint32."""
    start = first | (FP32.sign_bit if negative else 0)
    return np.arange(start, start + count, dtype=np.uint32)


def evaluated(bits: np.ndarray, evaluate: Evaluate) -> tuple[np.ndarray, np.ndarray]:
    """Return (x, F) of bit patterns, float64 of their shape."""
    x = bits.view(np.float32).astype(np.float64)
    return x, evaluate(torch.from_numpy(x)).numpy()


def errors(bits: np.ndarray, models: list[taylor.Model], evaluate: Evaluate) -> np.ndarray:
    """Return e in units of 2^-53; bits (G, N), one model a row. A NaN becomes infinite."""
    x, result = evaluated(bits, evaluate)
    table = np.array([(m.centre, m.hi, m.slope, *m.tail) for m in models])[:, :, None]
    x -= table[:, 0]
    polynomial = x * table[:, -1]
    for column in range(table.shape[1] - 2, 2, -1):
        polynomial += table[:, column]
        if column > 3:
            polynomial *= x
    difference = result - table[:, 1]
    x *= table[:, 2]
    difference -= x
    difference -= polynomial
    with np.errstate(all="ignore"):
        np.subtract(result, difference, out=x)
        np.divide(difference, x, out=x)
    np.abs(x, out=x)
    x *= _SCALE
    x[np.isnan(x)] = math.inf
    return x


def direct_error(x: float, result: float, formula: str, order: int, prec: int = 256) -> float:
    """Return an upper bound of the relative error at one input, in units of 2^-53, from Arb."""
    exact = arb.ball(formula, x, order, prec)
    with load("flint").ctx.workprec(prec):
        error = float(((result - exact) / exact).abs_upper()) * _SCALE
    return math.inf if math.isnan(error) else error


def _batches(parts: Iterator[Block]) -> Iterator[list[Block]]:
    """Group blocks of one length, modelled or not, to at most ``MAX_BLOCK`` inputs."""
    batch: list[Block] = []
    for block in parts:
        alike = bool(batch) and (batch[0].length, batch[0].model is None) == (
            block.length,
            block.model is None,
        )
        if batch and not (alike and (len(batch) + 1) * block.length <= taylor.MAX_BLOCK):
            yield batch
            batch = []
        batch.append(block)
    if batch:
        yield batch


def _modelled(shard: Shard, batch: list[Block], evaluate: Evaluate) -> Result:
    models = [block.model for block in batch if block.model is not None]
    count = batch[0].length
    bits = patterns(batch[0].first, len(batch) * count, shard.negative).reshape(len(batch), count)
    seen = errors(bits, models, evaluate)
    peaks = seen.max(axis=1)
    slack = np.array([m.error for m in models])
    uppers = peaks * _ROUNDINGS + slack
    # argmax takes the first of equals, and bits ascend: the smallest pattern.
    worst, highest = int(uppers.argmax()), int(peaks.argmax())
    return Result(
        bits.size,
        len(models),
        0,
        float(uppers[worst]),
        int(bits[worst, seen[worst].argmax()]),
        float(peaks[highest]),
        int(bits[highest, seen[highest].argmax()]),
        float(slack.max()),
    )


def _direct(shard: Shard, batch: list[Block], evaluate: Evaluate) -> Result:
    total = Result()
    for block in batch:
        bits = patterns(block.first, block.length, shard.negative)
        x, results = evaluated(bits, evaluate)
        for pattern, point_, result in zip(bits, x, results, strict=True):
            error = direct_error(float(point_), float(result), shard.formula, shard.order)
            total = total.merge(Result(1, 0, 1, error, int(pattern), error, int(pattern)))
    return total


def _small(bits: np.ndarray, evaluate: Evaluate) -> Result:
    """Return an infinite error where a result of ``underflow`` is not in [-2^-1000, -0]."""
    _, results = evaluated(bits, evaluate)
    limit = -(2.0**SMALLEST_EXPONENT) * _ROUNDINGS
    wrong = ~((results >= limit) & np.signbit(results))
    if not wrong.any():
        return Result(bits.size)
    first = int(bits[int(wrong.argmax())])
    return Result(bits.size, 0, 0, math.inf, first, math.inf, first)


def _higher(one: tuple[float, int], two: tuple[float, int]) -> tuple[float, int]:
    return max(one, two, key=lambda peak: (peak[0], -peak[1]))
