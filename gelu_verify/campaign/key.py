"""What tells campaigns apart: everything that their results depend on."""

from __future__ import annotations

import hashlib
import importlib.util
import sys
from collections.abc import Sequence
from importlib import metadata
from pathlib import Path

import gelu_verify
from gelu_verify.exhaustive.names import CENSUS_VERSION, engine_name
from gelu_verify.job import Job
from gelu_verify.kernels.spec import KernelSpec
from gelu_verify.reference.certificate.source import source_hash


def of(job: Job, sweep: str) -> dict[str, str]:
    """Return all that the result of a campaign depends on, by name.

    sweep: which patterns, in what shards.
    """
    return {
        "gelu_verify": gelu_verify.__version__,
        "kernel": job.spec.target,
        "kernel source": _kernel_hash(job.spec),
        "function": f"{job.operator}:{job.via or 'direct'}:{job.formula}",
        "contract": hashlib.sha256(job.contract.model_dump_json().encode()).hexdigest()[:16],
        "device": _device_name(job.device),
        "libraries": ", ".join(f"{name} {_version(name)}" for name in ("torch", "triton")),
        "sweep": sweep,
        "reference": source_hash(),
        "engine": engine_name(job.device),
        "figures": CENSUS_VERSION,
    }


def _kernel_hash(spec: KernelSpec) -> str:
    """Return the hash of the folder or file a kernel is written in, with what is in ``csrc`` there.

    "" for a torch operator that some other library registers.
    """
    source = spec.imports or spec.target.rpartition(":")[0]
    if not source:
        return ""
    if Path(source).is_file():  # Python, or a library
        files = [Path(source)]
    else:
        found = origin(source) or Path(source)
        compiled = sorted((found.parent / "csrc").glob("*"))
        whole = compiled or found.name == "__init__.py"
        files = [*sorted(found.parent.glob("*.py")), *compiled] if whole else [found]
    state = hashlib.sha256()
    for file in files:
        state.update(file.read_bytes() if file.is_file() else b"")
    return state.hexdigest()[:16]


def origin(module: str) -> Path | None:
    """Return the file of a module, without importing its packages: that is for a child process."""
    path: Sequence[str] | None = None
    names = module.split(".")
    for count in range(1, len(names) + 1):
        name = ".".join(names[:count])
        try:
            found = (finder.find_spec(name, path) for finder in sys.meta_path)
            spec = next((spec for spec in found if spec), None)
        except KeyError:  # a namespace inside another, which only an import finds; it runs nothing
            spec = importlib.util.find_spec(name)
        if spec is None:
            return None
        path = spec.submodule_search_locations
        if path is None and count < len(names):
            return None
    return Path(spec.origin) if spec and spec.origin else None


def _device_name(device: str) -> str:
    if not device.startswith("cuda"):
        return "cpu"
    import torch

    if (torch.device(device).index or 0) >= torch.cuda.device_count():
        return f"{device}, absent"  # the check will say so
    return f"cuda {torch.cuda.get_device_name(torch.device(device))}"


def _version(name: str) -> str:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return "absent"
