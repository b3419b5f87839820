"""Kernels in a shared library with a C ABI: ``path/to/lib.so:symbol``, without a Python wrapper.

    void gelu(const T *x, T *out, size_t n);
    void gelu_backward(const T *dy, const T *x, T *out, size_t n);

T is ``float`` when the kernel is called in fp32 and ``double`` in fp64. The ABI does not say which
of them (nor how many pointers) a symbol takes, so such a kernel is checked in fp32 unless
``--format fp64`` says otherwise; other formats have no C type and are declined.

The arrays are contiguous and do not overlap: an input of another layout is copied first, so
that every layout reaches the function by the same route. The result is a fresh array, filled with
NaN: an element that the function does not write shows. An empty input calls it with ``n = 0``
(and pointers that may be null).
"""

from __future__ import annotations

import ctypes
import re
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from gelu_verify.errors import UsageError
from gelu_verify.kernels import activity

if TYPE_CHECKING:
    import torch

#: What a kernel of this kind declares: the formats and devices it is checked in by default.
FORMATS = ("fp32",)
DEVICES = ("cpu",)
_NAME = re.compile(r".*\.(so(\.\d+)*|dylib|dll)")


def is_library(source: str) -> bool:
    """Tell whether a path is that of a shared library, by its suffix."""
    return _NAME.fullmatch(source) is not None


def require_library(source: str) -> Path:
    """Return the absolute path of a library; a usage error if there is no such file."""
    path = Path(source)
    if not path.is_file():
        raise UsageError(
            f"kernel library: got {source}, expected an existing shared library. Check the path."
        )
    return path.resolve()


def load(target: str, arguments: tuple[str, ...]) -> Callable[..., torch.Tensor]:
    """Return a function of tensors that calls ``path/to/lib.so:symbol``.

    arguments: the operator's, one ``const T *`` each.
    Raises UsageError for a file that is missing or no library, and for a missing symbol.
    """
    source, _, symbol = target.rpartition(":")
    path = require_library(source)
    try:
        with activity.of_kernel():
            library = ctypes.CDLL(str(path))
    except OSError as error:
        detail = " ".join(str(error).split())
        raise UsageError(
            f"kernel library {source}: got a file that does not load ({detail}), "
            "expected a shared library for this machine. Compile it with cc -shared -fPIC."
        ) from None
    try:
        function = library[symbol]
    except AttributeError:
        raise UsageError(
            f"kernel {target}: got no symbol {symbol} in the library, expected a C function. "
            f'Declare it extern "C" in C++; see what there is with: nm -D {shlex.quote(source)}'
        ) from None
    function.restype = None
    function.argtypes = [*(ctypes.c_void_p for _ in (*arguments, "out")), ctypes.c_size_t]
    return _on_tensors(function, symbol)


def _on_tensors(function: Callable[..., None], symbol: str) -> Callable[..., torch.Tensor]:
    """Return a function of tensors (of one shape, float32 or float64) that calls a C function."""
    import torch

    def kernel(*inputs: torch.Tensor) -> torch.Tensor:
        x = inputs[-1]
        if x.dtype not in (torch.float32, torch.float64):
            raise NotImplementedError(
                f"{symbol} is a C function of float (fp32) or double (fp64), got {x.dtype}"
            )
        if any(part.dtype != x.dtype for part in inputs):
            got = ", ".join(str(part.dtype) for part in inputs)
            raise TypeError(f"{symbol}: got {got}, expected arguments of one dtype")
        if any(part.requires_grad for part in inputs):
            raise NotImplementedError(f"{symbol} is a C function and has no gradient")
        arrays = [part.contiguous() for part in inputs]
        out = torch.full(x.shape, torch.nan, dtype=x.dtype)
        function(*(array.data_ptr() for array in (*arrays, out)), x.numel())
        return out

    return kernel
