"""How two results of the same inputs differ: bit for bit, and in ULP of the format."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from gelu_verify import describe
from gelu_verify.bounds.bounded import half_ulp
from gelu_verify.formats import Format, tensors
from gelu_verify.report.numbers import figure


@dataclass(frozen=True)
class Difference:
    """What differs between two tensors of one shape and format.

    count: elements of other bits, of ``total``. max_ulp: the largest distance, in ULP of the
    larger of the two values; infinite between a number and no number. index: where that is.
    """

    count: int
    total: int
    max_ulp: float
    index: tuple[int, ...]
    values: tuple[str, str]

    def __str__(self) -> str:
        here, there = self.values
        return (
            f"{self.count:,} of {self.total:,} elements; most at {list(self.index)}: "
            f"{here} and {there}, {figure(self.max_ulp)} ULP apart"
        )


def difference(one: Tensor, other: Tensor, fmt: Format) -> Difference | None:
    """Return how two tensors differ, None if bit for bit they do not; any two NaN are alike."""
    one, other = one.detach(), other.detach()
    a, b = one.double(), other.double()
    same = tensors.to_bits(one, fmt) == tensors.to_bits(other, fmt)
    differs = ~(same | (torch.isnan(a) & torch.isnan(b)))
    if not differs.any():
        return None
    ulp = 2 * half_ulp(torch.maximum(a.abs(), b.abs()).nan_to_num(nan=0.0), fmt)
    apart = ((a - b).abs() / ulp).nan_to_num(nan=torch.inf)
    flat = int(torch.where(differs, apart, -1.0).flatten().argmax())
    index = tuple(int(i) for i in np.unravel_index(flat, tuple(one.shape)))
    shown = tuple(describe.value(float(part[index]), fmt) for part in (a, b))
    return Difference(
        int(differs.sum()), differs.numel(), float(apart[index]), index, (shown[0], shown[1])
    )
