"""All entries of the catalogue, in the order of their modules and of their declaration."""

from __future__ import annotations

from importlib import import_module
from typing import TypeVar

from gelu_verify.errors import UnavailableError, unknown_name
from gelu_verify.selftest.entry import Defect, Entry, Sound

E = TypeVar("E", bound=Entry)


def defects() -> tuple[Defect, ...]:
    """Return every defect."""
    return _entries("reference_kernels.defects", Defect)


def sounds() -> tuple[Sound, ...]:
    """Return every sound kernel."""
    return _entries("reference_kernels.sound", Sound)


def chosen(names: list[str]) -> tuple[Entry, ...]:
    """Return entries by name, all of them for no name; an unknown name is a usage error."""
    entries = {entry.name: entry for entry in (*defects(), *sounds())}
    for name in names:
        if name not in entries:
            raise unknown_name(
                "kernel", name, entries, "docs/what_this_catches.md lists the defects."
            )
    return tuple(entries[name] for name in names or entries)


def _entries(package: str, kind: type[E]) -> tuple[E, ...]:
    """Return the entries that functions of a package's ``MODULES`` carry; names are unique."""
    try:
        modules = import_module(package).MODULES
    except ModuleNotFoundError as error:
        raise UnavailableError(f"selftest: {error}. Run it from a checkout.") from None
    found: dict[str, E] = {}
    for part in modules:
        module = import_module(f"{package}.{part}")
        for value in vars(module).values():
            entry = getattr(value, "entry", None)
            if not isinstance(entry, kind) or value.__module__ != module.__name__:
                continue
            if entry.name in found:
                raise ValueError(f"{entry.target}: {entry.name} is declared twice")
            found[entry.name] = entry
    return tuple(found.values())
