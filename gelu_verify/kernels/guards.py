"""Guard bands: a tensor inside a larger buffer of a known pattern, so that stray accesses show.

A kernel that writes outside its tensors changes a band. One that reads outside sees the pattern,
and its result changes with it. What a kernel allocates itself, with ``torch.empty`` and the like,
is guarded too, and filled with the pattern: what it leaves unwritten shows.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import wraps
from typing import Any, ParamSpec, TypeVar

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode, _disable_current_modes

from gelu_verify.kernels.failure import KernelFailure

#: Bytes on either side: more than a tile of 128 by 64 in fp32 reaches, and a multiple of the
#: alignment that torch's allocators give (64 on a CPU, 512 on CUDA).
BAND = 1 << 16
_ALIGNED = 512

_aten = torch.ops.aten
_ALLOCATING = frozenset(
    (
        _aten.empty.memory_format,
        _aten.empty_strided.default,
        _aten.empty_like.default,
        _aten.empty_permuted.default,
        _aten.new_empty.default,
        _aten.new_empty_strided.default,
    )
)
_OF_TORCH = frozenset(("aten", "prim", "prims"))
_COMPILER = "torch._dynamo"
P = ParamSpec("P")
R = TypeVar("R")


@dataclass(frozen=True)
class Fill:
    """A byte that bands are filled with, and what elements read as then, in every format."""

    byte: int
    reads_as: str

    def pattern(self, itemsize: int) -> int:
        """Return the bit pattern of an element of so many bytes."""
        return int.from_bytes(bytes([self.byte] * itemsize), "little")


NAN = Fill(0xFF, "NaN")
#: 3152 in bf16, 5.27 in fp16, 3156 in fp32, 5e25 in fp64, 3.25 and 5 in fp8.
NUMBER = Fill(0x45, "a number")


@dataclass(frozen=True)
class Guarded:
    """One tensor in its buffer (uint8) as it was filled, and which bytes are the tensor's own."""

    name: str
    tensor: Tensor
    buffer: Tensor
    before: Tensor
    own: Tensor
    may_write: bool

    def faults(self) -> list[str]:
        """Say which bytes have changed that must not: bands and gaps, and contents of inputs."""
        changed = self.buffer != self.before
        found = []
        outside = (changed & ~self.own).nonzero().flatten()
        if outside.numel():
            found.append(
                f"{outside.numel():,} bytes written outside {self.name}{self._far(outside)}"
            )
        if not self.may_write:
            size = self.tensor.element_size()
            inside = int((changed & self.own).view(-1, size).any(1).sum())
            if inside:
                found.append(f"{self.name} was overwritten ({inside:,} elements of it)")
        return found

    def _far(self, outside: Tensor) -> str:
        """Say how far from the tensor the farthest of these bytes are."""
        own = self.own.nonzero().flatten()
        before, after = int(own[0] - outside[0]), int(outside[-1] - own[-1])
        parts = [f"{before} before it"] * (before > 0) + [f"{after} behind it"] * (after > 0)
        return f", up to {' and '.join(parts)}" if parts else ", in gaps between its elements"


@dataclass
class Guards:
    """All guarded tensors of one call, filled alike."""

    fill: Fill
    guarded: list[Guarded] = field(default_factory=list)

    def holding(self, name: str, part: Tensor) -> Tensor:
        """Return a tensor of the same values, strides and alignment that must not be written."""
        with _disable_current_modes():  # what is allocated here is the harness's own
            return self._placed(name, part, copied=True)

    def around(self, name: str, like: Tensor) -> Tensor:
        """Return a tensor of the same shape and strides, filled with the pattern, to be written."""
        with _disable_current_modes():
            return self._placed(name, like, copied=False)

    def faults(self) -> list[str]:
        """Say what was written that must not be."""
        return [fault for guarded in self.guarded for fault in guarded.faults()]

    @contextmanager
    def allocator(self, device: torch.device) -> Iterator[None]:
        """Guard what is allocated by ``torch.empty`` and the like in this thread, on a device."""
        with _eagerly(), _Allocator(self, device):
            yield

    def _placed(self, name: str, part: Tensor, copied: bool) -> Tensor:
        size = part.element_size()
        places = _places(part)
        span = int(places.max()) + 1 if places.numel() else 0
        start = BAND + part.storage_offset() * size % _ALIGNED
        buffer = torch.empty(start + span * size + BAND, dtype=torch.uint8, device=part.device)
        buffer.fill_(self.fill.byte)
        own = torch.zeros(buffer.numel(), dtype=torch.bool, device=part.device)
        own[start : start + span * size].view(-1, size)[places] = True
        # Not a view: a kernel's own differentiation may treat views apart.
        tensor = part.detach().new_empty(0)
        tensor.set_(buffer.untyped_storage(), start // size, part.shape, part.stride())
        if copied and places.numel():
            flat = part.detach().new_empty(0)
            flat.set_(buffer.untyped_storage(), start // size, (span,), (1,))
            flat[places] = part.detach().reshape(-1)
        self.guarded.append(Guarded(name, tensor, buffer, buffer.clone(), own, not copied))
        return tensor


@contextmanager
def _eagerly() -> Iterator[None]:
    """Run compiled functions eagerly, as they do under a dispatch mode, and compile them later.

    Left to itself the compiler would mark a function first seen under a mode as never to be
    compiled, and every later check would see the eager route.
    """
    if _COMPILER in sys.modules:
        with torch.compiler.set_stance("force_eager"):
            yield
        return
    try:
        yield
    finally:
        loaded = sys.modules.get(_COMPILER)  # by the kernel, in its first call
        if loaded is not None:
            loaded.reset()


def repeated_for_compiler(observe: Callable[P, R]) -> Callable[P, R]:
    """Decorate what calls a kernel under guards: once more where that loads torch's compiler.

    A call that loads it cannot be told before to run eagerly, and the compiler then fails on the
    mode itself. Loading it ahead for every kernel would cost those without it seconds.
    """

    @wraps(observe)
    def observed(*arguments: P.args, **options: P.kwargs) -> R:
        loaded = _COMPILER in sys.modules
        try:
            return observe(*arguments, **options)
        except KernelFailure:
            if loaded or _COMPILER not in sys.modules:
                raise
        return observe(*arguments, **options)

    return observed


class _Allocator(TorchDispatchMode):
    """Replaces fresh memory by guarded memory."""

    def __init__(self, guards: Guards, device: torch.device) -> None:
        super().__init__()
        self.guards, self.device = guards, device

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        """Keep torch from wrapping the method below, which would load its compiler: seconds."""
        return False

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        if _COMPILER in sys.modules:
            return torch._dynamo.disable(self._dispatched)(func, args, kwargs or {})
        return self._dispatched(func, args, kwargs or {})

    def _dispatched(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if func.namespace not in _OF_TORCH:
            # An operator of the user's: what it allocates inside is to be guarded too.
            key = getattr(torch._C.DispatchKey, self.device.type.upper())
            with self:
                return func.redispatch(torch._C.DispatchKeySet(key), *args, **kwargs)
        result = func(*args, **kwargs)
        if func not in _ALLOCATING or not self._guardable(result):
            return result
        name = f"buffer {sum(g.may_write for g in self.guards.guarded) + 1} of the kernel"
        return self.guards.around(f"{name} {tuple(result.shape)}", result)

    def _guardable(self, result: Tensor) -> bool:
        # A pattern is no bool; pinned memory must stay pinned.
        kind = type(result) is Tensor and result.device.type == self.device.type
        return kind and result.dtype is not torch.bool and not result.is_pinned()


def takes_out(function: Callable[..., Any]) -> bool:
    """Tell whether a kernel takes a buffer for its result, by the keyword ``out``."""
    try:
        return "out" in inspect.signature(function).parameters
    except (TypeError, ValueError):
        return False


def _places(part: Tensor) -> Tensor:
    """Return where in memory each element lies (int64, flat, in logical order), from the first."""
    places = torch.zeros((), dtype=torch.int64, device=part.device)
    for length, stride in zip(part.shape, part.stride(), strict=True):
        places = places[..., None] + torch.arange(length, device=part.device) * stride
    return places.reshape(-1)
