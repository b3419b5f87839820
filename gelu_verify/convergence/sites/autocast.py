"""Autocast, where all of an operator is computed in one function of its own."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import torch
from torch import Tensor


@contextmanager
def lifted(arguments: Sequence[Tensor]) -> Iterator[tuple[Tensor, ...]]:
    """Yield arguments in the dtype that autocast computes in, which is off inside.

    Without autocast that is the dtype of the first.
    """
    device, wanted = arguments[0].device.type, arguments[0].dtype
    if torch.is_autocast_enabled(device):
        wanted = torch.get_autocast_dtype(device)
    given = tuple(part.to(wanted) for part in arguments)
    with torch.autocast(device, enabled=False):
        yield given
