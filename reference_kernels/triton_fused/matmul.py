"""Host side of the matrix product: checks, the choice of a tile, the launch."""

from __future__ import annotations

from functools import partial
from typing import Any

import torch
import triton
from torch import Tensor

from . import launch, tma
from .matmul_kernels import matmul_kernel

#: Sums per step; the same for all tiles of a format, see `matmul_kernels.py`.
_BLOCK_K = {2: 64, 4: 32}
#: (BLOCK_M, BLOCK_N, warps, stages). 128x128 leaves room for two programs on a multiprocessor, so
#: that one multiplies while the other is in its epilogue; 128x256 reads least.
_TILES = {
    2: ((128, 256, 8, 3), (128, 256, 8, 4), (128, 128, 4, 3), (128, 128, 8, 4), (64, 128, 4, 4)),
    4: ((128, 64, 8, 2), (64, 64, 4, 2), (64, 64, 8, 3)),
}
_SKINNY = {2: ((64, 32, 4, 5), (64, 64, 4, 5), (64, 32, 4, 3)), 4: ((64, 32, 4, 2), (64, 64, 4, 2))}
_SMALL = {2: (64, 64, 4, 3), 4: (64, 32, 4, 2)}
#: Products below which no time is spent on finding a tile.
_WORTH_TUNING = 2**26
_INTERPRETER_BLOCK = 128


def matmul(
    a: Tensor,
    b: Tensor,
    bias: Tensor | None = None,
    formula: str = "",
    save_pre: bool = False,
) -> tuple[Tensor, Tensor | None]:
    """Return f(a·b + bias) for a (M, K), b (K, N), bias (N,), and a·b + bias if ``save_pre``.

    Both have a's dtype, rounded once from fp32; formula "" leaves f out.
    """
    (m, k), n = a.shape, b.shape[1]
    out = torch.empty((m, n), dtype=a.dtype, device=a.device)
    pre = torch.empty_like(out) if save_pre else None
    if out.numel():
        _launch(a, b, bias, formula, out, pre, k)
    return out, pre


def product(a: Tensor, b: Tensor) -> Tensor:
    """Return a·b for a (M, K), b (K, N) of one dtype, rounded once from fp32.

    By cuBLAS in 16 bits, which is faster; fp32 is ours, because there cuBLAS may use TF32.
    """
    if a.element_size() == 2 and not launch.INTERPRETED:
        return torch.mm(a, b)
    return matmul(a, b)[0]


def _launch(
    a: Tensor, b: Tensor, bias: Tensor | None, formula: str, out: Tensor, pre: Tensor | None, k: int
) -> None:
    m, n = out.shape
    skinny = min(m, n) <= 64
    worth_tuning = m * n * k >= _WORTH_TUNING
    order = "".join("r" if part.stride(1) == 1 else "c" for part in (a, b))
    met = f"{_decade(m)} {_decade(n)} {_decade(k)} {order}"
    if worth_tuning and not skinny and tma.serves(a, b, bias, out):
        tma.run(a, b, bias, formula, out, pre, met)
        return
    a, b, target = launch.stored(a), launch.stored(b), launch.stored(out)
    size = a.element_size()
    step = launch.block(k, _INTERPRETER_BLOCK) if launch.INTERPRETED else _BLOCK_K[size]
    arguments = [
        *(a, b, target if bias is None else launch.stored(bias), target),
        *(target if pre is None else launch.stored(pre), m, n, k, *a.stride(), *b.stride()),
        0 if bias is None else bias.stride(0),
    ]
    options: dict[str, Any] = {
        "FORMULA": formula,
        "HAS_BIAS": bias is not None,
        "SAVE_PRE": pre is not None,
        "FAST": launch.is_fast(out),
        "EVEN_K": k % step == 0,
        "BLOCK_K": step,
        "GROUP": 8,
    }
    if launch.INTERPRETED:
        tile = (launch.block(m, _INTERPRETER_BLOCK), launch.block(n, _INTERPRETER_BLOCK), 4, 1)
        launch.run(matmul_kernel, _grid(m, n, *tile), *arguments, **options, **_tile(tile))
    elif not worth_tuning:
        tile = _SMALL[size]
        launch.run(matmul_kernel, _grid(m, n, *tile), *arguments, **options, **_tile(tile))
    else:
        launch.run(
            launch.tuned(matmul_kernel, partial(_configs, size, skinny), f"{8 * size} bits {met}"),
            lambda chosen: _grid(m, n, chosen["BLOCK_M"], chosen["BLOCK_N"]),
            *arguments,
            **options,
        )


def _configs(size: int, skinny: bool) -> list[triton.Config]:
    return [
        triton.Config({"BLOCK_M": m, "BLOCK_N": n}, num_warps=warps, num_stages=stages)
        for m, n, warps, stages in (_SKINNY if skinny else _TILES)[size]
    ]


def _tile(tile: tuple[int, int, int, int]) -> dict[str, int]:
    return dict(zip(("BLOCK_M", "BLOCK_N", "num_warps", "num_stages"), tile, strict=True))


def _grid(m: int, n: int, block_m: int, block_n: int, *_: int) -> tuple[int]:
    return (triton.cdiv(m, block_m) * triton.cdiv(n, block_n),)


def _decade(size: int) -> int:
    """Give the power of four next to a size: sizes alike share a tile."""
    return (max(size, 1).bit_length() + 1) // 2
