"""Files that anyone may have written: read within bounds, refused in one line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from gelu_verify.errors import UsageError


def read_text(path: Path, what: str, largest: int) -> str:
    """Return the UTF-8 text of a regular file of at most ``largest`` bytes, else a usage error.

    what: the kind of file, for the message.
    """
    try:
        if path.exists() and not path.is_file():
            raise UsageError(f"{what}: got {path}, expected a file.")
        with path.open("rb") as file:
            content = file.read(largest + 1)
        text = content.decode("utf-8")
    except OSError as error:
        raise UsageError(f"{what}: got {path}, {error.strerror}. Check the path.") from None
    except UnicodeDecodeError:
        raise UsageError(f"{what}: got {path}, expected text in UTF-8.") from None
    if len(content) > largest:
        raise UsageError(f"{what}: got {path}, expected at most {largest >> 20} MiB.")
    return text


def read_json(path: Path, what: str, largest: int) -> dict[str, Any]:
    """Return the object of a JSON file; duplicate keys, NaN and infinity are refused."""
    text = read_text(path, what, largest)
    try:
        found = json.loads(text, object_pairs_hook=_without_repeats, parse_constant=_refused)
    except RecursionError:
        raise UsageError(f"{what}: got {path}, nested too deeply.") from None
    except ValueError as error:
        detail = " ".join(str(error).split())[:200]
        raise UsageError(f"{what}: got {path}, expected a JSON object ({detail}).") from None
    if not isinstance(found, dict):
        raise UsageError(f"{what}: got {path}, expected a JSON object.")
    return found


def _without_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a key is there twice")
    return found


def _refused(constant: str) -> None:
    raise ValueError(f"{constant} is no number of JSON")
