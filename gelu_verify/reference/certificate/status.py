"""Whether the fast reference is certified: read the committed record, compare the source's hash.

Cheap (a few milliseconds, without torch), so that every output can show it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

from gelu_verify.reference.certificate import source

SCHEMA_VERSION = 1
PATH = source.FOLDER / "data" / "certificate.json"
FUNCTIONS = tuple(
    f"{formula}:{order}" for formula in ("erf", "tanh", "sigmoid") for order in (0, 1)
)
_ENVIRONMENT = ("torch", "python_flint", "cpu_capability")
REMEDY = "Run python -m gelu_verify.reference.certificate make."


@dataclass(frozen=True)
class CertificateStatus:
    """Whether the certificate speaks for the source as it is.

    certified: every zone of every function is certified, the bounds hold, the hash is that of the
        source. reason: one line that says so, or what is missing.
    incomplete: not certified, but only because zones were not enumerated yet.
    max_error_units: function (``erf:0``) to its largest proven error, relative, in units of 2^-53;
        empty where there is no readable certificate.
    environment: the libraries and the instruction set it was made with.
    """

    certified: bool
    reason: str
    max_error_units: Mapping[str, float]
    environment: Mapping[str, str]
    incomplete: bool = False


def status(path: Path = PATH) -> CertificateStatus:
    """Return the status of the certificate at ``path`` for the source in this package."""
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
        reason = _objection(document)
        gap = None if reason else _gap(document)
        errors = {
            name: entry["max_error_units"]
            for name, entry in document["functions"].items()
            if "max_error_units" in entry
        }
        environment = {name: str(document["environment"][name]) for name in _ENVIRONMENT}
        date = str(document["date"])
    except FileNotFoundError:
        return _uncertified(f"there is no certificate at {path}. {REMEDY}")
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        why = f"{type(error).__name__}: {error}"
        return _uncertified(f"the certificate at {path} cannot be read ({why}). {REMEDY}")
    if reason or gap:
        return _uncertified(str(reason or gap), errors, environment, incomplete=reason is None)
    made = f"torch {environment['torch']}, {environment['cpu_capability']}"
    worst = max(errors.values())
    text = f"certified on {date} with {made}: at most {worst:.3f}·2^-53 relative"
    return CertificateStatus(True, text + _elsewhere(environment["torch"]), errors, environment)


def _objection(document: Mapping[str, Any]) -> str | None:
    """Return what is wrong with what the document says of the source, None if nothing is."""
    if document["schema_version"] != SCHEMA_VERSION:
        got = document["schema_version"]
        return f"the certificate has schema {got}, expected {SCHEMA_VERSION}. {REMEDY}"
    stated, current = document["source_hash"], source.source_hash()
    if stated != current:
        return (
            f"the source of the fast reference has hash {current[:12]}, the certificate stands for "
            f"{stated[:12]}. {REMEDY}"
        )
    for name in FUNCTIONS:
        entry = document["functions"][name]
        if sum(zone["count"] for zone in entry["zones"]) != 2**32:
            return f"{name}: the counts of the zones do not add up to 2^32. {REMEDY}"
        error, bound = entry.get("max_error_units", 0.0), entry["bound"]
        if not error <= bound or (entry["complete"] and not entry["holds"]):
            return f"{name} has an error of {error}·2^-53, above its bound {bound}."
    return None


def _gap(document: Mapping[str, Any]) -> str | None:
    """Return which zones the document has not certified, None if it has them all."""
    for name in FUNCTIONS:
        entry = document["functions"][name]
        missing = [f"{z['zone']} ({z['side']})" for z in entry["zones"] if not z["certified"]]
        if missing or not entry["complete"] or "max_error_units" not in entry:
            return f"{name} is not certified in {', '.join(missing)}. {REMEDY}"
    return None


def _elsewhere(certified_torch: str) -> str:
    """Return a warning if the installed torch, whose exp counts, is another one."""
    try:
        installed = metadata.version("torch")
    except metadata.PackageNotFoundError:
        return ""
    if installed == certified_torch:
        return ""
    return f" (installed: torch {installed}, for whose exp the stated bounds are by analysis)"


def _uncertified(
    reason: str,
    errors: Mapping[str, float] | None = None,
    environment: Mapping[str, str] | None = None,
    *,
    incomplete: bool = False,
) -> CertificateStatus:
    text = f"uncertified: {reason}"
    return CertificateStatus(False, text, errors or {}, environment or {}, incomplete)
