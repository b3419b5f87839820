"""``[tool.gelu_verify]`` of a pyproject.toml."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

from gelu_verify.config.reading import parsed
from gelu_verify.config.settings import Settings
from gelu_verify.errors import UsageError
from gelu_verify.untrusted import read_text

#: Larger than any configuration written by hand.
_LARGEST = 4 << 20


def load(path: Path) -> Settings:
    """Return the settings of a file.

    Raises :class:`UsageError` for a file that cannot be read, is no TOML, has no such table or a
    key or value in it that is none; the nearest known key is named.
    """
    return parsed(Settings, _table(path), f"configuration {path}")


def load_if_there(path: Path) -> Settings:
    """Return the settings of a file, the defaults where it or its table is missing."""
    return load(path) if path.is_file() and "tool.gelu_verify" in _text(path) else Settings()


def _text(path: Path) -> str:
    return read_text(path, "configuration", _LARGEST)


def _table(path: Path) -> dict[str, Any]:
    try:
        content = tomllib.loads(_text(path))
    except RecursionError:
        raise UsageError(f"configuration: got {path}, nested too deeply. Flatten it.") from None
    except ValueError as error:  # TOMLDecodeError, or a number of too many digits
        detail = " ".join(str(error).split())[:200]
        raise UsageError(f"configuration: got {path}, expected TOML ({detail}).") from None
    tool = content.get("tool")
    table = tool.get("gelu_verify") if isinstance(tool, dict) else None
    if not isinstance(table, dict):
        raise UsageError(
            f"configuration: got {path} without [tool.gelu_verify]. "
            'Add [[tool.gelu_verify.kernels]] with kernel = "path/to/file.py:function".'
        )
    return table
