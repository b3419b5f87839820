"""Write and read result files."""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path

from pydantic import ValidationError

from gelu_verify.errors import UsageError
from gelu_verify.records import Results
from gelu_verify.report import markdown


def require_writable(path: Path | None) -> None:
    """Raise a usage error now, not after the run, if a file cannot be written."""
    if path is None or str(path) == "-":
        return
    folder = path.parent
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(f"output: got {path}, {error.strerror}. Choose another folder.") from None
    if path.is_dir() or not os.access(path if path.exists() else folder, os.W_OK):
        raise UsageError(f"output: got {path}, expected a file that can be written.")


def write(results: Results, json: Path | None, summary: Path | None) -> None:
    """Write results as JSON and as a Markdown summary, each whole or not at all."""
    text = results.model_dump_json(indent=2) + "\n"
    if str(json) == "-":
        sys.stdout.write(text)
    elif json is not None:
        replace(json, text)
    if summary is not None:
        replace(summary, markdown.summary(results))


def replace(path: Path, text: str) -> None:
    """Write a file so that a reader sees the old content or the new, never a part."""
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
        Path(name).chmod(0o644)
        os.replace(name, path)
    except OSError as error:
        Path(name).unlink(missing_ok=True)
        raise UsageError(f"output: got {path}, {error.strerror}. Choose another place.") from None


def read(path: Path) -> Results:
    """Read a ``results.json``; anything else is a usage error."""
    try:
        return Results.model_validate_json(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise UsageError(f"results: got {path}, {error.strerror}.") from None
    except (ValidationError, UnicodeDecodeError) as error:
        detail = str(error).splitlines()[0]
        raise UsageError(
            f"results: got {path}, which is not a results file of this version ({detail})."
        ) from None
