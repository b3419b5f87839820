"""Optional libraries, imported when first needed."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from typing import Any

from gelu_verify.errors import UnavailableError

_PACKAGES = {"flint": "python-flint"}


@cache
def load(name: str) -> Any:
    """Import a library of the development extra; raise UnavailableError if it is missing."""
    try:
        return import_module(name)
    except ImportError as error:
        raise UnavailableError(
            f"cross-check of the oracle: got no module {name} ({error}), expected the package "
            f"{_PACKAGES.get(name, name)}. Install the development extra: "
            "pip install 'gelu_verify[dev]'."
        ) from error
