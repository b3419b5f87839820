"""Memory layouts that reach a kernel's dispatch by another route, holding the same values.

Each layout takes a tensor (N,) and gives a tensor of the same N values, in the same logical order
once flattened, on the same device. A kernel must give the same result for all of them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch

Layout = Callable[[torch.Tensor], torch.Tensor]


@dataclass(frozen=True)
class Route:
    """One way through a dispatch: a layout, and how many values one call takes.

    values_per_call: 0 for all at once.
    """

    name: str
    layout: Layout
    values_per_call: int = 0


def strided(x: torch.Tensor) -> torch.Tensor:
    """Return every second element of a buffer twice as long."""
    buffer = torch.zeros(2 * x.numel(), dtype=x.dtype, device=x.device)
    buffer[::2] = x
    return buffer[::2]


def transposed(x: torch.Tensor) -> torch.Tensor:
    """Return a column-major matrix (N/4, 4)."""
    matrix = x[: x.numel() // 4 * 4].reshape(-1, 4)
    return matrix.t().contiguous().t()


def offset(x: torch.Tensor) -> torch.Tensor:
    """Return a contiguous view that starts one element into its storage: misaligned vectors."""
    buffer = torch.zeros(x.numel() + 1, dtype=x.dtype, device=x.device)
    buffer[1:] = x
    return buffer[1:]


def expanded(x: torch.Tensor) -> torch.Tensor:
    """Return (N, 3) with stride 0 in the last dimension: each value three times."""
    return x[:, None].expand(-1, 3)


def sliced(x: torch.Tensor) -> torch.Tensor:
    """Return the left half of the columns of a matrix: rows apart, elements adjacent."""
    matrix = x[: x.numel() // 8 * 8].reshape(-1, 8)
    return torch.cat([matrix, torch.zeros_like(matrix)], dim=1)[:, :8]


def volume(x: torch.Tensor) -> torch.Tensor:
    """Return a contiguous tensor of three dimensions (N/15, 3, 5)."""
    return x[: x.numel() // 15 * 15].reshape(-1, 3, 5)


def channels_last(x: torch.Tensor) -> torch.Tensor:
    """Return pictures (N/30, 3, 2, 5) whose channels are adjacent in memory."""
    pictures = x[: x.numel() // 30 * 30].reshape(-1, 3, 2, 5)
    return pictures.contiguous(memory_format=torch.channels_last)


def permuted(x: torch.Tensor) -> torch.Tensor:
    """Return three dimensions (N/15, 3, 5), dense, with the middle one slowest in memory."""
    return volume(x).permute(1, 2, 0).contiguous().permute(2, 0, 1)


#: Columns of the matrices that a kernel with one value a column takes; no multiple of a vector.
COLUMNS = 61


def matrix(x: torch.Tensor) -> torch.Tensor:
    """Return a contiguous matrix (N/61, 61)."""
    return x[: x.numel() // COLUMNS * COLUMNS].reshape(-1, COLUMNS)


def _by_columns(layout: Layout) -> Layout:
    return lambda x: layout(matrix(x))


def _every_second_column(x: torch.Tensor) -> torch.Tensor:
    buffer = torch.zeros(x.shape[0], 2 * COLUMNS, dtype=x.dtype, device=x.device)
    buffer[:, ::2] = x
    return buffer[:, ::2]


def _middle_row_thrice(x: torch.Tensor) -> torch.Tensor:
    """Return (3, 61) with stride 0 between rows, of a row whose values are not all far out."""
    return x[x.shape[0] // 2].expand(3, -1)


def _same(x: torch.Tensor) -> torch.Tensor:
    return x


def _scalar(x: torch.Tensor) -> torch.Tensor:
    return x.reshape(())


#: For operators whose second argument has one value a column: each layout keeps the columns.
ROW_ROUTES: tuple[Route, ...] = (
    Route("rows", matrix),
    Route("strided", _by_columns(_every_second_column)),
    Route("transposed", _by_columns(lambda x: x.t().contiguous().t())),
    Route("sliced", _by_columns(lambda x: torch.cat([x, torch.zeros_like(x)], dim=1)[:, :COLUMNS])),
    Route("offset", _by_columns(lambda x: offset(x.reshape(-1)).reshape(-1, COLUMNS))),
    Route("expanded", _by_columns(_middle_row_thrice)),
    Route("3-d", _by_columns(lambda x: x[: x.shape[0] // 3 * 3].reshape(-1, 3, COLUMNS))),
    Route("short (7)", _same, 7),
    Route("single", _same, 1),
)
CONTIGUOUS = Route("contiguous", _same)
ROUTES: tuple[Route, ...] = (
    Route("strided", strided),
    Route("transposed", transposed),
    Route("sliced", sliced),
    Route("offset", offset),
    Route("expanded", expanded),
    Route("3-d", volume),
    Route("permuted", permuted),
    Route("channels last", channels_last),
    Route("short (7)", _same, 7),
    Route("single", _same, 1),
    Route("0-d", _scalar, 1),
)
