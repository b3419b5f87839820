"""What a worker does for an operator of two 16-bit arguments: rows of all 2^32 pairs.

A pair is numbered like an fp32 pattern: the pattern of the first argument, then that of the second.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from gelu_verify import formats, operators
from gelu_verify.campaign.call import called
from gelu_verify.job import Job

if TYPE_CHECKING:
    import torch

    from gelu_verify.exhaustive.census import Census

_COLUMNS = 1 << 16
#: Rows a call of the kernel takes: 2^20 pairs on a CPU, so that what a call costs beside its pairs
#: is little, 2^29 on a GPU.
_ROWS = {"cpu": 16, "cuda": 1 << 13}


def is_of_pairs(job: Job) -> bool:
    """Tell whether every input of a job is a pair of two 16-bit patterns."""
    if job.operator not in operators.OPERATORS or formats.get(job.format).bits != 16:
        return False
    return len(operators.get(job.operator).arguments) == 2


def measure_shard(
    job: Job, function: Callable[..., Any], start: int, stop: int, census: Census
) -> None:
    """Add the pairs from ``start`` to ``stop - 1``, whole rows, to a census, some at a time."""
    import torch

    from gelu_verify.exhaustive.pairs.measuring import PairPass
    from gelu_verify.exhaustive.pairs.reference import pair_reference

    device = torch.device(job.device)
    operator, fmt = operators.get(job.operator), formats.get(job.format)
    reference = pair_reference(operator, job.formula, fmt, device)  # type: ignore[arg-type]
    measuring = PairPass(reference, job.contract, census)
    first, last = start // _COLUMNS, stop // _COLUMNS
    rows = _ROWS[device.type]
    for row in range(first, last, rows):
        patterns = torch.arange(row, min(row + rows, last), device=device)
        measuring.add(row, _call(job, function, patterns))
    measuring.finish()


def _call(job: Job, function: Callable[..., Any], rows: torch.Tensor) -> torch.Tensor:
    """Return the kernel's results (R, 65536), each row with all patterns of the second argument."""
    import torch

    from gelu_verify.formats import tensors

    fmt = formats.get(job.format)
    columns = tensors.from_bits(torch.arange(_COLUMNS, device=rows.device), fmt)
    shape = (len(rows), _COLUMNS)
    first = tensors.from_bits(rows, fmt)[:, None].expand(shape).contiguous()
    # A bias has one value a column already; other operators take two arguments of one shape.
    has_columns = operators.get(job.operator).arguments[-1] == "bias"
    second = columns if has_columns else columns.expand(shape).contiguous()
    return called(function, (first, second), like=first).contiguous()
