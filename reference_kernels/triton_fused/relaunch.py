"""Launch again what was launched before, without Triton's look-up.

At every launch Triton binds and hashes all arguments and compares each global constant that the
kernel reads, some 30 coefficients here: that took a backward longer than its other steps on the
host together. What a kernel is specialised by is known from exact sizes and strides, dtypes and the
alignment of addresses; launches alike in these have the same binary.

Kernels that `triton.autotune` tunes are not among them: which configuration runs is its to say.
"""

from __future__ import annotations

from typing import Any

import torch
import triton
from torch import Tensor

#: What Triton compiles an address apart for, bytes.
_ALIGNMENT = 16
#: Sizes may be new with every call: past so many, all are forgotten.
_MOST = 4096
#: Kernel (held, so that its id stays its own), binary, values of the constants after the arguments.
_known: dict[tuple[Any, ...], tuple[Any, Any, tuple[Any, ...]]] = {}


def key_of(
    kernel: Any, leader: Tensor, arguments: tuple[Any, ...], options: dict[str, Any]
) -> tuple[Any, ...] | None:
    """Return what tells launches with other binaries apart; None for what is not kept."""
    if not isinstance(kernel, triton.runtime.JITFunction) or torch.version.hip is not None:
        return None
    kinds = (
        (part.dtype, part.data_ptr() % _ALIGNMENT == 0) if isinstance(part, Tensor) else part
        for part in arguments
    )
    return id(kernel), leader.get_device(), *kinds, *options.items()


def again(key: tuple[Any, ...] | None, grid: Any, arguments: tuple[Any, ...]) -> bool:
    """Launch what is kept under a key, if there is; tell whether there was."""
    known = _known.get(key) if key is not None else None
    if known is None:
        return False
    _, built, constants = known
    built[(*grid, 1, 1)[:3]](*arguments, *constants)
    return True


def keep(
    key: tuple[Any, ...] | None,
    kernel: Any,
    built: Any,
    arguments: tuple[Any, ...],
    options: dict[str, Any],
) -> None:
    """Keep the binary that a launch has used."""
    if key is None:
        return
    if len(_known) >= _MOST:
        _known.clear()
    constants = tuple(options[name] for name in kernel.arg_names[len(arguments) :])
    _known[key] = kernel, built, constants
