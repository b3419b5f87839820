"""From foreign data to a record, with one line that says what is wrong with it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from gelu_verify.errors import UsageError, unknown_name

M = TypeVar("M", bound=BaseModel)
_LONGEST = 80


def parsed(model: type[M], data: Mapping[str, Any], what: str, strict: bool | None = None) -> M:
    """Return the record of ``data``; a usage error names the first key that is wrong.

    what: where the data comes from, for the message.
    """
    try:
        return model.model_validate(dict(data), strict=strict)
    except ValidationError as error:
        # A key that is wrong explains why another one is missing.
        found = sorted(
            error.errors(include_url=False), key=lambda e: e["type"] != "extra_forbidden"
        )
        raise _usage_error(model, found[0], what) from None


def _usage_error(model: type[BaseModel], first: ErrorDetails, what: str) -> UsageError:
    where = _path(first["loc"])
    if first["type"] == "extra_forbidden":
        known = _fields_at(model, first["loc"][:-1])
        return unknown_name(f"{what}: key {where}", str(first["loc"][-1]), known)
    if first["type"] == "missing":
        return UsageError(f"{what}: got no {where}, expected one. Add it.")
    if first["type"] == "value_error":
        # The validators of names raise our own messages.
        message = first["msg"].removeprefix("Value error, ")
        return UsageError(f"{what}: {where}: {' '.join(message.split())}")
    if first["type"] in ("literal_error", "enum") and isinstance(first["input"], str):
        names = re.findall(r"'([^']*)'", first["ctx"]["expected"])
        return unknown_name(f"{what}: {where}", first["input"][:_LONGEST], names)
    got = shortened(first["input"])
    expected = first["msg"].removeprefix("Input should be ")
    return UsageError(f"{what}: {where}: got {got}, expected {expected}.")


def _path(location: tuple[int | str, ...]) -> str:
    """Return a location as the file writes it: kernels[0].formats."""
    text = ""
    for part in location:
        text += f"[{part}]" if isinstance(part, int) else f".{part}"
    return shortened(text.removeprefix("."), quoted=False)


def _fields_at(model: type[BaseModel], location: tuple[int | str, ...]) -> list[str]:
    """Return the keys that the record at a location knows."""
    for part in location:
        if isinstance(part, int):
            continue
        annotation = model.model_fields[part].annotation
        inner = [t for t in _types(annotation) if isinstance(t, type) and issubclass(t, BaseModel)]
        model = inner[0]
    return list(model.model_fields)


def _types(annotation: Any) -> list[Any]:
    """Return an annotation and all that it is made of."""
    return [annotation, *(t for part in getattr(annotation, "__args__", ()) for t in _types(part))]


def shortened(value: object, quoted: bool = True) -> str:
    """Return a value in at most 80 characters of one line; it may be anything at all."""
    try:
        text = repr(value) if quoted else str(value)
    except (RecursionError, ValueError):  # too deep, or an integer of too many digits
        return f"a {type(value).__name__} that is too large to show"
    text = " ".join(text.split())
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"
