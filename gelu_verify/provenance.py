"""Where and with what results were made. The first part loads no framework."""

from __future__ import annotations

import platform
import subprocess
import sys
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import Any

import gelu_verify
from gelu_verify.records import Environment

_LIBRARIES = (
    *("torch", "triton", "numba", "numpy", "scipy"),
    *("mpmath", "gmpy2", "python-flint", "hypothesis"),
)


def environment(runtime: dict[str, Any]) -> Environment:
    """Return the environment record; ``runtime`` is what the process that ran the kernels knows."""
    return Environment(
        gelu_verify=gelu_verify.__version__,
        commit=_git("rev-parse", "HEAD"),
        dirty=None if (changes := _git("status", "--porcelain")) is None else bool(changes),
        date=datetime.now(UTC).isoformat(timespec="seconds"),
        python=platform.python_version(),
        platform=platform.platform(),
        processor=_processor(),
        libraries=_versions(),
        **runtime,
    )


def runtime(device: str) -> dict[str, Any]:
    """Return what only the process that ran the kernels knows; needs torch, loaded by then."""
    import torch

    found: dict[str, Any] = {"instruction_set": torch.backends.cpu.get_cpu_capability()}
    if device.startswith("cuda") and torch.cuda.is_available():
        found["device"] = torch.cuda.get_device_name(torch.device(device))
        found["driver"] = _driver()
    if "gelu_verify.kernels.canary" in sys.modules:
        from gelu_verify.kernels import canary, interpreter

        if interpreter.launches():
            found["interpreter_canaries"] = canary.results()
    return found


def _versions() -> dict[str, str]:
    versions = {}
    for name in _LIBRARIES:
        try:
            versions[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return versions


def _git(*arguments: str) -> str | None:
    """Return git's answer about this project's own checkout, None outside one."""
    root = Path(__file__).resolve().parent.parent
    if not (root / ".git").exists():
        return None
    return _answer(["git", "-C", str(root), *arguments], seconds=10)


def _answer(command: list[str], seconds: float) -> str | None:
    """Return what a command prints, None if it is missing, fails or hangs."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=seconds, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.strip() if done.returncode == 0 else None


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    named = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return named[0] if named else platform.processor()


def _driver() -> str | None:
    query = ["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"]
    answer = _answer(query, seconds=20)
    return answer.splitlines()[0].strip() if answer else None
