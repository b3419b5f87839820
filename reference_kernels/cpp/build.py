"""Build a library of operators with torch's extension builder, once, and load it.

A library is kept in the user's cache folder under a hash of all that it is made of: its sources and
headers, the flags, the compiler, torch. Processes that need it at once wait for the first; the lock
is the operating system's and goes with the process that holds it, whatever ends that.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import platform
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import torch

from gelu_verify.errors import UnavailableError
from gelu_verify.kernels import activity

_SOURCES = Path(__file__).with_name("csrc")
#: No contraction to FMA: every instruction set gives the same bits. No errno, no traps: loops with
#: comparisons and roots can be vectorised. OpenMP is what at::parallel_for runs in.
_CFLAGS = ("-O3", "-fno-math-errno", "-fno-trapping-math", "-ffp-contract=off", "-fopenmp")
_LDFLAGS = ("-fopenmp",)


def load(source: str) -> None:
    """Load the library of ``csrc/<source>``, built first where the cache lacks it.

    Raises UnavailableError, in one line, where it cannot be built.
    """
    library = _folder(source) / f"{_name(source)}.so"
    if not library.exists():
        # A build takes longer than a kernel may; it is not the kernel that runs.
        with activity.of_harness(), _locked(library.parent):
            if not library.exists():
                _build(source, library)
    torch.ops.load_library(str(library))


def compiler() -> str:
    """Return the C++ compiler that torch's builder calls."""
    return os.environ.get("CXX", "c++")


def _name(source: str) -> str:
    return f"gelu_verify_kernels_{Path(source).stem}"


def _folder(source: str) -> Path:
    """Return the folder of a library, named after the hash of what it is made of."""
    state = hashlib.sha256()
    for path in (_SOURCES / source, *sorted(_SOURCES.glob("*.h"))):
        state.update(path.read_bytes())
    versions = (torch.__version__, sys.version, platform.machine(), compiler())
    target = _gpu_target() if source.endswith(".cu") else ()
    state.update(repr((_CFLAGS, _LDFLAGS, versions, target)).encode())
    root = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return root / "gelu_verify" / "cpp" / f"{Path(source).stem}-{state.hexdigest()[:16]}"


def _gpu_target() -> tuple[object, ...]:
    """Return the architectures that torch's builder compiles for: those asked for, or this one."""
    here = torch.cuda.get_device_capability() if torch.cuda.is_available() else None
    return (os.environ.get("TORCH_CUDA_ARCH_LIST"), here)


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Hold the lock of a folder, made if need be, against other processes."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        file = (folder / "in_use").open("w")
    except OSError as error:
        raise UnavailableError(
            f"C++ kernels: got no cache folder ({error}), expected one that can be written. "
            "Name another in XDG_CACHE_HOME."
        ) from None
    with file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _build(source: str, library: Path) -> None:
    """Build a library and move it to its place whole; the caller holds the lock."""
    _require_tools()
    from torch.utils import cpp_extension

    scratch = library.parent / "build"
    # What a process that was killed has left, torch's own lock file included, which never goes.
    shutil.rmtree(scratch, ignore_errors=True)
    scratch.mkdir()
    try:
        cpp_extension.load(
            name=library.stem,
            sources=[str(_SOURCES / source)],
            extra_cflags=list(_CFLAGS),
            extra_ldflags=list(_LDFLAGS),
            build_directory=str(scratch),
            is_python_module=False,
        )
    except (RuntimeError, OSError) as error:
        raise UnavailableError(
            f"C++ kernels: got an error from the build of {source} ({_first_error(error)}), "
            f"expected a library. See it whole with: python -c 'import {__package__}.cpu'"
        ) from error
    os.replace(scratch / library.name, library)
    shutil.rmtree(scratch, ignore_errors=True)


def _require_tools() -> None:
    """Raise unless a C++ compiler and ninja can be run; ninja may come on PATH by this.

    The package of ninja puts it beside python, which need not be on PATH.
    """
    if shutil.which(compiler()) is None:
        raise UnavailableError(
            f"C++ kernels: got no C++ compiler ({compiler()}), expected one on PATH. "
            "Install g++, or name another in CXX."
        )
    if shutil.which("ninja") is None:
        beside = Path(sys.executable).parent
        if not (beside / "ninja").exists():
            raise UnavailableError(
                "C++ kernels: got no ninja, expected it on PATH, as torch's builder needs it. "
                "Install the extra: pip install 'gelu_verify[cpp]'."
            )
        os.environ["PATH"] = f"{os.environ.get('PATH', '')}{os.pathsep}{beside}"


def _first_error(error: BaseException) -> str:
    """Return the line of a build's output that says what is wrong."""
    lines = str(error).splitlines() or [type(error).__name__]
    telling = [line for line in lines if "error" in line.lower()]
    return " ".join((telling[1:] or telling or lines)[0].split())[:200]
