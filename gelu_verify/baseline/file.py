"""The file of a baseline: one JSON object with a digest of its content, whole or not at all.

The digest tells damage and careless edits; who means to forge one recomputes it, which a review of
the diff must see.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from gelu_verify.baseline.record import SCHEMA_VERSION, Baseline
from gelu_verify.config.reading import parsed
from gelu_verify.errors import UsageError
from gelu_verify.report import files
from gelu_verify.untrusted import read_json

#: Larger than any baseline.
_LARGEST = 4 << 20
_DIGEST = "digest"


def _to_2(content: dict[str, Any]) -> dict[str, Any]:
    """Version 1 kept figures alone."""
    found = content.get("measurements")
    parts = found if isinstance(found, list) else []
    measurements = [part | {"comparable": None} for part in parts if isinstance(part, dict)]
    return content | {"schema_version": 2, "measurements": measurements}


#: From a schema version to the next.
_MIGRATIONS: dict[int, Callable[[dict[str, Any]], dict[str, Any]]] = {1: _to_2}


def write(path: Path, baseline: Baseline) -> None:
    """Replace a file in one step; where that fails the old one stays whole."""
    files.require_writable(path)
    files.replace(path, text(baseline))


def text(baseline: Baseline) -> str:
    """Return the content of a file, in an order that does not change.

    A figure a line for whoever reads a diff; what only a gate reads is one line a measurement.
    """
    content = json.loads(baseline.model_dump_json())
    content[_DIGEST] = digest(content)
    lines = [_compact(part["comparable"]) for part in content["measurements"]]
    for number, part in enumerate(content["measurements"]):
        part["comparable"] = (
            f"{content[_DIGEST]}:{number}"  # stands for a line, and for no other text
        )
    shown = json.dumps(content, indent=1, sort_keys=True) + "\n"
    for number, line in enumerate(lines):
        shown = shown.replace(json.dumps(f"{content[_DIGEST]}:{number}"), line, 1)
    return shown


def read(path: Path) -> Baseline:
    """Return the baseline of a file, of this schema version or an older one.

    Raises :class:`UsageError` for one that is missing, unreadable, truncated, altered, of another
    project or of a newer version.
    """
    content = read_json(path, "baseline", _LARGEST)
    version = content.get("schema_version")
    if type(version) is not int or version < 1:
        raise UsageError(f"baseline: got {path} without a schema_version. {_ACCEPT}")
    if version > SCHEMA_VERSION:
        raise UsageError(
            f"baseline: got {path} of schema version {version}, expected at most "
            f"{SCHEMA_VERSION}. Upgrade gelu_verify."
        )
    if content.pop(_DIGEST, None) != digest(content):
        raise UsageError(
            f"baseline: got {path}, which was altered or damaged after it was written "
            f"(its digest does not match). {_ACCEPT}"
        )
    for number in range(version, SCHEMA_VERSION):
        content = _MIGRATIONS[number](content)
    return parsed(Baseline, content, f"baseline {path}")


_ACCEPT = "Restore it, or measure again: gelu-verify baseline accept."


def digest(content: dict[str, Any]) -> str:
    """Return the SHA-256 of content, whatever its order and its spaces."""
    return hashlib.sha256(_compact(content).encode()).hexdigest()


def _compact(content: Any) -> str:
    return json.dumps(content, sort_keys=True, separators=(",", ":"))
