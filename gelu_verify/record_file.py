"""Files of records, one JSON object a line, that runs add to and later runs read."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Generic, Protocol, Self, TypeVar

from pydantic import ValidationError

from gelu_verify.errors import GeluVerifyError, UsageError


class Kept(Protocol):
    """A record as such a file keeps it."""

    @property
    def key(self) -> tuple[object, ...]:
        """What makes two records the same: the later one is not written again."""

    def require_valid(self) -> None:
        """Raise a usage error for content that its fields alone do not exclude."""

    @classmethod
    def model_validate_json(cls, text: str, /) -> Self:
        """Return the record of a line."""

    def model_dump_json(self) -> str:
        """Return the line of a record."""


R = TypeVar("R", bound=Kept)


@dataclass(frozen=True)
class RecordFile(Generic[R]):
    """How files of one kind are read and added to. what: their name, in the plural; one: of one."""

    model: type[R]
    what: str
    one: str

    def read(self, path: Path) -> list[R]:
        """Return the records of a file; a usage error names the first line that cannot be read."""
        try:
            text = path.read_text(encoding="utf-8")
        except OSError as error:
            raise UsageError(
                f"{self.what}: got {path}, {error.strerror}. Check the path."
            ) from None
        except UnicodeDecodeError:
            raise UsageError(f"{self.what}: got {path}, expected text in UTF-8.") from None
        return self._parse(text, path)

    def append(self, path: Path, records: Iterable[R]) -> int:
        """Add records that a file does not hold yet and return how many; all in one write.

        Two processes may append at once: each holds the file's lock from reading to writing.
        """
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            with path.open("a+b") as file, _locked(file):
                file.seek(0)
                text = file.read().decode("utf-8", errors="replace")
                known = {record.key for record in self._parse(text, path)}
                new = {record.key: record for record in records if record.key not in known}
                lines = "".join(record.model_dump_json() + "\n" for record in new.values())
                start = "\n" if lines and text and not text.endswith("\n") else ""
                # One write to a file opened for appending: a reader sees all of it or nothing.
                os.write(file.fileno(), (start + lines).encode())
                return len(new)
        except OSError as error:
            raise UsageError(
                f"{self.what}: got {path}, {error.strerror}. Choose another place."
            ) from None

    def _parse(self, text: str, path: Path) -> list[R]:
        records = []
        for number, line in enumerate(text.splitlines(), start=1):
            if not line.strip():
                continue
            try:
                record = self.model.model_validate_json(line)
                record.require_valid()
            except (ValidationError, GeluVerifyError) as error:
                detail = " ".join(str(error).split())[:200]
                raise UsageError(
                    f"{self.what}: got {path} line {number} ({detail}), "
                    f"expected one JSON object of a {self.one}. Repair or delete the line."
                ) from None
            records.append(record)
        return records


@contextmanager
def _locked(file: IO[bytes]) -> Iterator[None]:
    """Hold the file alone, where the system can."""
    with contextlib.suppress(ImportError):
        import fcntl

        fcntl.flock(file, fcntl.LOCK_EX)  # released when the file is closed
    yield
