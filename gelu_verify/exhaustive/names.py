"""Which engine measures on a device here, by name, and what a census holds; loads none of them."""

from __future__ import annotations

import importlib.util
from importlib import metadata

#: Of what a census holds, for the ledger's key: it changes when a census gains a figure.
CENSUS_VERSION = "2"


def engine_name(device: str) -> str:
    """Return the engine that measures on a device here, with its version: the ledger's key."""
    if device.startswith("cuda"):
        return f"triton {metadata.version('triton')}"
    return f"numba {metadata.version('numba')}" if is_compiled() else "torch"


def is_compiled() -> bool:
    """Tell whether the compiled loops for CPUs can be had."""
    return importlib.util.find_spec("numba") is not None
