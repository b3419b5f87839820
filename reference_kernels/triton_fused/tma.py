"""Host side of the product that TMA feeds: where it serves, its descriptors, its tiles."""

from __future__ import annotations

from functools import cache, partial
from typing import Any

import torch
import triton
from torch import Tensor

from . import compiled, launch
from .tma_kernels import tma_matmul_kernel

#: (BLOCK_M, BLOCK_N, warps, stages, parts, persistent programs of a multiprocessor)
_TILES = (
    (128, 128, 4, 3, 2, 2),
    (128, 256, 8, 4, 2, 1),
    (128, 128, 4, 2, 1, 0),
    (128, 128, 4, 3, 1, 0),
    (128, 64, 4, 3, 1, 0),
    (64, 128, 4, 3, 1, 0),
)
_BLOCK_K = 64
#: What a descriptor wants: strides and addresses in multiples of this many bytes.
_ALIGNMENT = 16


def serves(a: Tensor, b: Tensor, bias: Tensor | None, out: Tensor) -> bool:
    """Tell whether TMA can feed a·b: 16 bits, K and N contiguous and aligned, an sm_90."""
    return (
        a.element_size() == 2
        and all(_fits(part) for part in (a, b.t(), out))
        and (bias is None or bias.stride(0) == 1)
        and _has_tma(a)
    )


def _fits(part: Tensor) -> bool:
    size = part.element_size()
    rows, columns = part.stride()
    return (
        columns == 1
        and rows * size % _ALIGNMENT == 0
        and rows >= part.shape[1] > 0
        and max(part.shape) < 2**31 - 256  # counted in 32 bits, to the end of the last tile
        and part.data_ptr() % _ALIGNMENT == 0
    )


def _has_tma(part: Tensor) -> bool:
    if compiled.is_ahead():
        target = triton.runtime.driver.active.get_current_target()
        is_hopper = target.backend == "cuda" and target.arch // 10 == 9
        return bool(is_hopper) and _descriptor() is not None
    return part.is_cuda and _device_has_tma(part.get_device())


@cache
def _device_has_tma(device: int) -> bool:
    return (
        torch.version.hip is None
        and torch.cuda.get_device_capability(device)[0] == 9
        and _descriptor() is not None
    )


@cache
def _descriptor() -> Any:
    """Return Triton's class of descriptors, None in versions that have none."""
    try:
        from triton.tools.tensor_descriptor import TensorDescriptor
    except ImportError:
        return None
    return TensorDescriptor


def run(
    a: Tensor,
    b: Tensor,
    bias: Tensor | None,
    formula: str,
    out: Tensor,
    pre: Tensor | None,
    met: str,
) -> None:
    """Fill out with f(a·b + bias), and pre with a·b + bias; met: the kind of size."""
    left, right, target = (_described(part) for part in (a, b.t(), out))
    saved = target if pre is None else _described(pre)
    sizes = (*out.shape, a.shape[1])
    arguments = (left, right, out if bias is None else bias, target, saved, *sizes)
    grid = partial(_grid, out.shape[0], out.shape[1], _multiprocessors(a))
    options = {
        "FORMULA": formula,
        "HAS_BIAS": bias is not None,
        "SAVE_PRE": pre is not None,
        "BLOCK_K": _BLOCK_K,
        "GROUP": 8,
    }
    if not compiled.is_ahead():
        launch.run(launch.tuned(tma_matmul_kernel, _configs, met), grid, *arguments, **options)
        return
    for config in _configs():  # Triton's own warmup of an autotuner leaves out what describes
        _describe(dict(zip(tma_matmul_kernel.arg_names, arguments, strict=False)) | config.kwargs)
        launch.run(tma_matmul_kernel, grid, *arguments, **options, **config.all_kwargs())


def _described(part: Tensor) -> Any:
    """Return a descriptor whose block `_describe` sets."""
    return _descriptor()(part, part.shape, part.stride(), [_BLOCK_K, _BLOCK_K])


def _configs() -> list[triton.Config]:
    return [
        triton.Config(
            {"BLOCK_M": m, "BLOCK_N": n, "PARTS": parts, "PERSISTENT": persistent},
            num_warps=warps,
            num_stages=stages,
            pre_hook=_describe,
        )
        for m, n, warps, stages, parts, persistent in _TILES
    ]


def _multiprocessors(part: Tensor) -> int:
    return _of_device(part.get_device()) if part.is_cuda else 1  # nothing is launched ahead


@cache
def _of_device(device: int) -> int:
    return torch.cuda.get_device_properties(device).multi_processor_count


def _describe(arguments: dict[str, Any]) -> None:
    """Give the descriptors the blocks of a tile."""
    m, n = arguments["BLOCK_M"], arguments["BLOCK_N"]
    arguments["a"].block_shape = [m, _BLOCK_K]
    arguments["b"].block_shape = [n, _BLOCK_K]
    for name in ("out", "pre"):
        arguments[name].block_shape = [m, n // arguments["PARTS"]]


def _grid(m: int, n: int, multiprocessors: int, chosen: dict[str, Any]) -> tuple[int]:
    tiles = triton.cdiv(m, chosen["BLOCK_M"]) * triton.cdiv(n, chosen["BLOCK_N"])
    return (min(tiles, chosen["PERSISTENT"] * multiprocessors or tiles),)
