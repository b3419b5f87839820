"""What every host function of this package needs: refusals, storage, rows, the device."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

import torch
import triton
from torch import Tensor

from reference_kernels.triton_pointwise import kernels as pointwise

from . import compiled, relaunch

FORMULAS = ("erf", "tanh", "sigmoid")
_DTYPES = (torch.float32, torch.bfloat16, torch.float16)
#: Whether kernels run in Triton's interpreter, fixed when they were defined.
INTERPRETED = not isinstance(pointwise.gelu_erf_kernel, triton.runtime.JITFunction)

#: The autotuners so far, by kernel and kind of size.
TUNED: dict[str, Any] = {}


def require(formula: str, **arguments: Tensor) -> None:
    """Raise unless the formula is known and all arguments share a supported dtype and a device."""
    if formula not in FORMULAS:
        raise ValueError(f"formula: got {formula!r}, expected one of {', '.join(FORMULAS)}.")
    (first, leader), *_ = arguments.items()
    for name, tensor in arguments.items():
        if tensor.dtype not in _DTYPES:
            raise TypeError(
                f"{name}: got {tensor.dtype}, expected a tensor of float32, bfloat16 or float16. "
                "Convert it first."
            )
        if tensor.dtype != leader.dtype or tensor.device != leader.device:
            raise TypeError(
                f"{name}: got {tensor.dtype} on {tensor.device}, expected {first}'s "
                f"{leader.dtype} on {leader.device}. Convert one of them."
            )
    if leader.device.type == "meta" and not compiled.is_ahead():
        raise ValueError(f"{first}: got device meta, expected a GPU. Give it memory there.")
    if leader.device.type == "cpu" and not INTERPRETED:
        raise ValueError(
            f"{first}: got device cpu, expected a GPU. Move it there, or set TRITON_INTERPRET=1 "
            "before triton is imported to run on the CPU."
        )


def require_shape(name: str, tensor: Tensor, shape: tuple[int, ...]) -> None:
    """Raise unless a tensor has a shape."""
    if tuple(tensor.shape) != shape:
        raise ValueError(f"{name}: got shape {tuple(tensor.shape)}, expected {shape}.")


def is_fast(tensor: Tensor) -> bool:
    """Tell whether the fast forms of `activation.py` serve this tensor's format."""
    return tensor.dtype != torch.float32


def stored(tensor: Tensor) -> Tensor:
    """Give a tensor as kernels take it: bf16 as int16 bits in the interpreter, see `storage.py`."""
    if tensor.is_neg():
        tensor = tensor.resolve_neg()
    if not INTERPRETED:
        return tensor
    return tensor.detach().view(torch.int16) if tensor.dtype == torch.bfloat16 else tensor.detach()


def rows(tensor: Tensor) -> Tensor:
    """View (..., N) as (M, N); only what no stride can express is copied."""
    if tensor.dim() == 2:
        return tensor
    return (
        tensor.reshape(-1, tensor.shape[-1])
        if tensor.numel()
        else tensor.new_empty(tensor.shape[:-1].numel(), tensor.shape[-1])
    )


def block(size: int, most: int, least: int = 16) -> int:
    """Give the power of two that holds `size`, within limits."""
    return max(least, min(most, triton.next_power_of_2(max(size, 1))))


def parts(size: int, block: int) -> int:
    """Give how many blocks cover a size; `triton.cdiv`, a kernel's too, takes 20 times as long."""
    return -(-size // block)


def tuned(kernel: Any, configs: Callable[[], list[triton.Config]], met: str) -> Any:
    """Give what tries the configurations of a matrix product the first time it meets a size.

    met: the kind of size; each has an autotuner of its own, as a size among the kernel's arguments
    would compile it again.
    """
    name = f"{kernel.fn.__name__} {met}"
    if name not in TUNED:
        tuner = triton.autotune(configs(), key=["FORMULA", "SAVE_PRE"], do_bench=_milliseconds)
        TUNED[name] = tuner(kernel)
    return TUNED[name]


def _milliseconds(call: Callable[[], object], quantiles: tuple[float, ...]) -> Any:
    """Time launches replayed as a graph: one by one, a busy host's own time would be compared."""
    return triton.testing.do_bench_cudagraph(call, quantiles=quantiles)


def run(kernel: Any, grid: Any, *arguments: Any, **options: Any) -> None:
    """Launch on the device of the first tensor; grid: sizes, or their function of the tile.

    Fusion is off: `triton_pointwise/math.py` says why. What `tl.fma` and `tl.dot` fuse stays so.
    While a warmup runs, the kernel is compiled and not launched.
    """
    options["enable_fp_fusion"] = False
    if compiled.is_ahead():
        compiled.note(kernel.warmup(*arguments, grid=grid, **options), arguments, options)
        return
    leader = next(part for part in arguments if isinstance(part, Tensor))
    elsewhere = leader.is_cuda and leader.get_device() != torch.cuda.current_device()
    with torch.cuda.device(leader.device) if elsewhere else contextlib.nullcontext():
        key = relaunch.key_of(kernel, leader, arguments, options)
        if relaunch.again(key, grid, arguments):
            return
        built = kernel[grid](*arguments, **options)
    relaunch.keep(key, kernel, built, arguments, options)
    compiled.note(built, arguments, options)
