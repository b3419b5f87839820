"""What has been compiled: a line for each artefact, in a file beside Triton's cache.

Kernels are compiled ahead (`warmup.py`) or when a shape is first met (`launch.py`); both go through
`note`. The artefacts themselves are Triton's: this is an index, never read to run anything.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import triton
from torch import Tensor
from triton.runtime.cache import get_cache_manager

_FILE = "gelu_verify_compiled.jsonl"
#: Hashes that this process has noted.
_noted: set[str] = set()
#: Where `note` also adds what is compiled now, and what for; set while a warmup runs.
_ahead: list[tuple[str, list[Artefact]]] = []


@dataclass(frozen=True)
class Artefact:
    """One compiled kernel. hash: Triton's, of source, signature, options and target.

    purpose: the case it was compiled ahead for, or the shapes that first met it.
    """

    kernel: str
    target: str
    format: str
    options: str
    purpose: str
    ahead: bool
    hash: str
    folder: str
    binary_sha256: str

    @property
    def is_stored(self) -> bool:
        """Whether Triton's cache still has it."""
        return (index_path().parent / self.folder).is_dir()


def index_path() -> Path:
    """Return the file of the index, in the folder of Triton's cache."""
    return Path(triton.knobs.cache.dir) / _FILE


def listed() -> tuple[Artefact, ...]:
    """Return what the index has, each artefact once, in the order of compilation."""
    path = index_path()
    if not path.exists():
        return ()
    found = [Artefact(**json.loads(line)) for line in path.read_text().splitlines()]
    return tuple({(part.hash, part.binary_sha256): part for part in reversed(found)}.values())[::-1]


@contextlib.contextmanager
def ahead(purpose: str) -> Iterator[list[Artefact]]:
    """Mark what is launched inside as compiled ahead, not run; yield the list it is added to."""
    found: list[Artefact] = []
    _ahead.append((purpose, found))
    try:
        yield found
    finally:
        _ahead.pop()


def is_ahead() -> bool:
    """Tell whether a warmup runs: kernels are compiled, and not launched."""
    return bool(_ahead)


def note(built: Any, arguments: tuple[Any, ...], options: dict[str, Any]) -> None:
    """Add what a launch or a warmup gave (a kernel, several, or None) to the index, once each."""
    if not _ahead and getattr(built, "hash", None) in _noted:
        return  # every launch but the first comes this way
    for kernel in built if isinstance(built, list) else [built]:
        if kernel is None:
            continue  # the interpreter's
        artefact = _described(kernel, arguments, options)
        for _, found in _ahead:
            found.append(artefact)
        if kernel.hash not in _noted:
            _noted.add(kernel.hash)
            _append(artefact)


def _append(artefact: Artefact) -> None:
    # A launch must not fail because the folder of the cache has become read-only.
    with contextlib.suppress(OSError):
        path = index_path()
        path.parent.mkdir(parents=True, exist_ok=True)
        handle = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
        try:
            os.write(handle, (json.dumps(asdict(artefact)) + "\n").encode())
        finally:
            os.close(handle)


def _described(kernel: Any, arguments: tuple[Any, ...], options: dict[str, Any]) -> Artefact:
    tensors = [part for part in arguments if isinstance(part, Tensor)]
    met = ", ".join(str(list(part.shape)) for part in tensors)
    target = kernel.metadata.target
    chosen = {name: value for name, value in options.items() if value != ""}
    chosen |= {"num_warps": kernel.metadata.num_warps, "num_stages": kernel.metadata.num_stages}
    return Artefact(
        kernel=kernel.name,
        target=f"{target.backend}:{target.arch}",
        format=str(tensors[0].dtype).removeprefix("torch."),
        options=" ".join(f"{name}={value}" for name, value in chosen.items()),
        purpose=_ahead[-1][0] if _ahead else f"tensors {met}",
        ahead=bool(_ahead),
        hash=kernel.hash,
        folder=Path(get_cache_manager(kernel.hash).cache_dir).name,
        binary_sha256=hashlib.sha256(kernel.kernel).hexdigest(),
    )
