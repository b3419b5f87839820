"""The ledger of long work: every finished shard, one SQLite transaction each.

It serves campaigns over every input of a kernel and the making of the certificate. Whatever kills a
run, the shards in the ledger are whole. A ledger belongs to one run: its key holds all that a
result depends on, and one with another key, or a damaged one, is refused.
"""

from __future__ import annotations

import hashlib
import json
import sqlite3
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path

from gelu_verify.errors import GeluVerifyError, UsageError

_SCHEMA = """
CREATE TABLE IF NOT EXISTS campaign (name TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS begun (day TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS shard (number INTEGER PRIMARY KEY, content TEXT NOT NULL,
                                  digest TEXT NOT NULL);
"""
_TABLES = {"campaign", "begun", "shard"}


class LedgerRefused(UsageError):
    """The file is damaged, is no ledger, or belongs to another campaign."""


class Ledger:
    """Finished shards of one campaign, by number, as text.

    key: what the results depend on: kernel, versions, device, sweep, reference, shard size.
    Raises :class:`LedgerRefused` when opening a file that is not this campaign's.
    """

    def __init__(self, path: Path, key: Mapping[str, str]) -> None:
        self.path = path
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._db = sqlite3.connect(path, isolation_level=None, timeout=30)
            self._db.execute("PRAGMA synchronous = FULL")
            self._require_whole()
            self._db.executescript(_SCHEMA)
            self._require_key(key)
            for _ in self.contents():  # before hours of work, not after
                pass
        except (sqlite3.Error, OSError) as error:
            raise self._refused(f"a file that SQLite cannot use ({error})") from None

    def _refused(self, got: str) -> LedgerRefused:
        return LedgerRefused(
            f"ledger {self.path}: got {got}, expected a ledger of this campaign. "
            "Delete it to start afresh, or name another with --ledger."
        )

    def _require_whole(self) -> None:
        (verdict,) = self._db.execute("PRAGMA quick_check").fetchone()
        if verdict != "ok":
            raise self._refused(f"damage ({verdict})")
        tables = self._db.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
        if foreign := {name for (name,) in tables} - _TABLES:
            raise self._refused(f"a database of something else ({min(foreign)})")

    def _require_key(self, key: Mapping[str, str]) -> None:
        with self._db:
            self._db.execute("BEGIN IMMEDIATE")
            known = dict(self._db.execute("SELECT name, value FROM campaign"))
            if not known:
                rows = sorted(key.items())
                self._db.executemany("INSERT INTO campaign VALUES (?, ?)", rows)
                self._db.execute("INSERT INTO begun VALUES (?)", (_today(),))
                return
        for name in sorted(set(known) | set(key)):
            if known.get(name) != key.get(name):
                raise self._refused(f"{name} = {known.get(name)!r} (this run: {key.get(name)!r})")

    @property
    def started(self) -> str:
        """The day the campaign began, UTC, ISO 8601."""
        (day,) = self._db.execute("SELECT day FROM begun").fetchone()
        return str(day)

    def done(self) -> set[int]:
        """Return the numbers of the finished shards."""
        return {number for (number,) in self._db.execute("SELECT number FROM shard")}

    def record(self, number: int, content: str) -> None:
        """Keep a finished shard, durably, before this returns."""
        row = (number, content, _digest(number, content))
        try:
            with self._db:
                self._db.execute("BEGIN IMMEDIATE")
                self._db.execute("INSERT OR REPLACE INTO shard VALUES (?, ?, ?)", row)
        except sqlite3.Error as error:
            raise GeluVerifyError(
                f"ledger {self.path}: got {error}, expected a file that can be written. "
                "Make room and run the same command again to go on."
            ) from None

    def contents(self) -> Iterator[str]:
        """Yield the content of every shard in order; one that was altered is refused."""
        for number, content, digest in self._db.execute("SELECT * FROM shard ORDER BY number"):
            if digest != _digest(number, content):
                raise self._refused(f"an altered shard {number}")
            yield content

    def __enter__(self) -> Ledger:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the file."""
        self._db.close()


def _today() -> str:
    return datetime.now(UTC).date().isoformat()


def _digest(number: int, content: str) -> str:
    return hashlib.sha256(f"{number}:{content}".encode()).hexdigest()


def key_digest(key: Mapping[str, str]) -> str:
    """Return 16 hex digits that tell campaigns apart, for the name of a ledger's file."""
    text = json.dumps(dict(key), sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:16]
