"""Write and read result files."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

from pydantic import ValidationError

from gelu_verify.errors import UsageError
from gelu_verify.records import Record, Results
from gelu_verify.report import markdown
from gelu_verify.untrusted import read_text

R = TypeVar("R", bound=Record)
#: Larger than the results of every registered kernel, campaigns included.
LARGEST = 64 << 20
#: The path that stands for standard output.
STDOUT = "-"


def require_writable(path: Path | None) -> None:
    """Raise a usage error now, not after the run, if a file cannot be written."""
    if path is None or str(path) == STDOUT:
        return
    try:
        if path.is_dir() or (path.exists() and not os.access(path, os.W_OK)):
            raise UsageError(f"output: got {path}, expected a file that can be written.")
        if not _is_special(path):
            path.parent.mkdir(parents=True, exist_ok=True)
            # root may write anywhere, and still not in /proc: only trying tells.
            tempfile.TemporaryFile(dir=path.parent).close()
    except OSError as error:
        raise UsageError(f"output: got {path}, {error.strerror}. Choose another place.") from None


def _is_special(path: Path) -> bool:
    """Tell whether a path is a device or a pipe, which must not be replaced by a file."""
    return path.exists() and not path.is_file()


def write(results: Results, json: Path | None, summary: Path | None) -> None:
    """Write results as JSON and as a Markdown summary, each whole or not at all."""
    if json is not None:
        put(json, results.model_dump_json(indent=2) + "\n")
    if summary is not None:
        put(summary, markdown.summary(results))


def put(path: Path, text: str) -> None:
    """Write text to a file, whole or not at all, or to stdout for ``-``."""
    if str(path) == STDOUT:
        sys.stdout.write(text)
    else:
        replace(path, text)


def replace(path: Path, text: str) -> None:
    """Write a file so that a reader sees the old content or the new, never a part."""
    name = None
    try:
        if _is_special(path):
            path.write_text(text, encoding="utf-8")
            return
        path = path.resolve()  # a symbolic link stays one
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name[:32]}.")
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            # A full disk may tell only now, while the old file is still there.
            os.fsync(file.fileno())
        Path(name).chmod(0o644)
        os.replace(name, path)
    except OSError as error:
        raise UsageError(f"output: got {path}, {error.strerror}. Choose another place.") from None
    finally:
        if name is not None:
            Path(name).unlink(missing_ok=True)  # nothing where it has become the file


def read(path: Path, kind: type[R] = Results) -> R:  # type: ignore[assignment]
    """Read a JSON file of results, of a check by default; anything else is a usage error."""
    text = read_text(path, "results", LARGEST)
    with _refusing(path):
        return kind.model_validate_json(text)


def record(content: dict[str, Any], kind: type[R], path: Path) -> R:
    """Return the record of a JSON file's content, where its kind was found in it."""
    with _refusing(path):
        return kind.model_validate(content)


@contextmanager
def _refusing(path: Path) -> Iterator[None]:
    """Turn what is wrong with a file's record into a usage error."""
    try:
        yield
    except ValidationError as error:
        detail = str(error).splitlines()[0]
        raise UsageError(
            f"results: got {path}, which is not a results file of this version ({detail})."
        ) from None
