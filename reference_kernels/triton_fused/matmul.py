"""Host side of the matrix product: checks, the choice of a tile, the launch."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
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
_SETTING = {
    torch.bfloat16: "allow_bf16_reduced_precision_reduction",
    torch.float16: "allow_fp16_reduced_precision_reduction",
}
_setting = threading.Lock()


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

    By cuBLAS in 16 bits, which is faster, inside `fp32_partial_sums`; fp32 is ours, because there
    cuBLAS may use TF32.
    """
    if a.element_size() == 2 and not launch.INTERPRETED:
        return torch.mm(a, b)
    return matmul(a, b)[0]


@contextlib.contextmanager
def fp32_partial_sums(dtype: torch.dtype) -> Iterator[None]:
    """Keep cuBLAS from rounding the parts of a split sum to 16 bits, as torch lets it by default.

    The setting is torch's own and global: other threads' products are no less exact meanwhile.
    """
    if dtype not in _SETTING:
        yield
        return
    name = _SETTING[dtype]
    settings: Any = torch.backends.cuda.matmul
    with _setting:
        before = getattr(settings, name)
        if before:  # where it is off, split sums may be off as well
            setattr(settings, name, False)
        try:
            yield
        finally:
            if before:
                setattr(settings, name, True)


def _launch(
    a: Tensor, b: Tensor, bias: Tensor | None, formula: str, out: Tensor, pre: Tensor | None, k: int
) -> None:
    (m, n), size = out.shape, a.element_size()
    a, b, target = launch.stored(a), launch.stored(b), launch.stored(out)
    bias = None if bias is None else launch.stored(bias)
    worth_tuning = m * n * k >= _WORTH_TUNING and not launch.INTERPRETED
    skinny = min(m, n) <= 64
    order = "".join("r" if part.stride(1) == 1 else "c" for part in (a, b))
    met = f"{_decade(m)} {_decade(n)} {_decade(k)} {order}"
    if worth_tuning and not skinny and tma.serves(a, b, bias, out):
        tma.run(a, b, bias, formula, out, pre, met)
        return
    arguments = [
        *(a, b, target if bias is None else bias, target),
        *(target if pre is None else launch.stored(pre), m, n, k, *a.stride(), *b.stride()),
        0 if bias is None else bias.stride(0),
    ]
    step = launch.block(k, _INTERPRETER_BLOCK) if launch.INTERPRETED else _BLOCK_K[size]
    options: dict[str, Any] = {
        "FORMULA": formula,
        "HAS_BIAS": bias is not None,
        "SAVE_PRE": pre is not None,
        "FAST": launch.is_fast(out),
        "EVEN_K": k % step == 0,
        "BLOCK_K": step,
        "GROUP": 8,
    }
    if worth_tuning:
        kind = f"{8 * size} bits {met}"
        kernel = launch.tuned(matmul_kernel, partial(_configs, size, skinny), kind)
        launch.run(kernel, partial(_grid_of, m, n), *arguments, **options)
        return
    tile = _SMALL[size]
    if launch.INTERPRETED:
        tile = (launch.block(m, _INTERPRETER_BLOCK), launch.block(n, _INTERPRETER_BLOCK), 4, 1)
    chosen = dict(zip(("BLOCK_M", "BLOCK_N", "num_warps", "num_stages"), tile, strict=True))
    launch.run(matmul_kernel, _grid_of(m, n, chosen), *arguments, **options, **chosen)


def _configs(size: int, skinny: bool) -> list[triton.Config]:
    return [
        triton.Config({"BLOCK_M": m, "BLOCK_N": n}, num_warps=warps, num_stages=stages)
        for m, n, warps, stages in (_SKINNY if skinny else _TILES)[size]
    ]


def _grid_of(m: int, n: int, chosen: dict[str, Any]) -> tuple[int]:
    return (triton.cdiv(m, chosen["BLOCK_M"]) * triton.cdiv(n, chosen["BLOCK_N"]),)


def _decade(size: int) -> int:
    """Give the power of four next to a size: sizes alike share a tile."""
    return (max(size, 1).bit_length() + 1) // 2
