"""The ledger of a run: every finished shard in SQLite, one transaction a shard.

A run that was killed goes on where it stopped. Rows belong to a ``run``, the hash of all that a
result depends on (source, coefficients, method, libraries, instruction set); rows of other runs
are kept, and never mixed in.
"""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from dataclasses import fields
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType

from gelu_verify.errors import UsageError
from gelu_verify.reference.certificate.sweep import Result
from gelu_verify.reference.certificate.zones import Shard

_SCHEMA = """
CREATE TABLE IF NOT EXISTS runs (run TEXT PRIMARY KEY, started TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS shards (
    run TEXT NOT NULL, formula TEXT NOT NULL, derivative INTEGER NOT NULL, zone TEXT NOT NULL,
    method TEXT NOT NULL, negative INTEGER NOT NULL, first INTEGER NOT NULL, stop INTEGER NOT NULL,
    result TEXT NOT NULL,
    PRIMARY KEY (run, formula, derivative, negative, first)
);
"""
_FIELDS = {field.name for field in fields(Result)}


class Ledger:
    """Finished shards of one run. Raises UsageError if the file is damaged or no ledger."""

    def __init__(self, path: Path, run: str) -> None:
        self._path, self._run = path, run
        if not path.parent.is_dir():
            raise UsageError(
                f"ledger: got {path}, expected a file in an existing folder. Create {path.parent}."
            )
        self._database = sqlite3.connect(path)
        try:
            self._prepare()
        except sqlite3.Error as error:
            self._database.close()
            raise self._damaged(str(error)) from error
        except UsageError:
            self._database.close()
            raise

    def __enter__(self) -> Ledger:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._database.close()

    @property
    def started(self) -> str:
        """The day the run began, UTC, ISO 8601."""
        query = "SELECT started FROM runs WHERE run = ?"
        with closing(self._database.execute(query, (self._run,))) as rows:
            return str(rows.fetchone()[0])

    def add(self, shard: Shard, result: Result) -> None:
        """Write one finished shard in a transaction of its own."""
        row = (self._run, *_columns(shard), json.dumps(result.as_dict()))
        with self._database:
            self._database.execute("INSERT INTO shards VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", row)

    def finished(self) -> dict[Shard, Result]:
        """Return every shard of the run with its result."""
        query = (
            "SELECT formula, derivative, zone, method, negative, first, stop, result "
            "FROM shards WHERE run = ?"
        )
        try:
            rows = self._database.execute(query, (self._run,)).fetchall()
        except sqlite3.Error as error:
            raise self._damaged(str(error)) from error
        done = {}
        for formula, order, zone, method, negative, first, stop, text in rows:
            shard = Shard(formula, order, zone, method, bool(negative), first, stop)
            done[shard] = self._result(shard, text)
        return done

    def _prepare(self) -> None:
        verdict = self._database.execute("PRAGMA quick_check(1)").fetchone()[0]
        if verdict != "ok":
            raise self._damaged(str(verdict))
        self._database.executescript(_SCHEMA)
        today = datetime.now(UTC).date().isoformat()
        with self._database:
            self._database.execute("INSERT OR IGNORE INTO runs VALUES (?, ?)", (self._run, today))

    def _result(self, shard: Shard, text: str) -> Result:
        try:
            entries = json.loads(text)
        except (TypeError, ValueError) as error:
            raise self._damaged(f"{shard.function} {shard.zone}: {error}") from error
        if not isinstance(entries, dict) or set(entries) != _FIELDS:
            raise self._damaged(f"{shard.function} {shard.zone}: unknown fields")
        result = Result(**entries)
        if result.count != shard.stop - shard.first:
            raise self._damaged(f"{shard.function} {shard.zone}: a shard of {result.count} inputs")
        return result

    def _damaged(self, why: str) -> UsageError:
        return UsageError(
            f"ledger: got {self._path}, which is damaged ({' '.join(why.split())}), expected a "
            "SQLite file that `make` wrote. Delete it and run `make` again."
        )


def _columns(shard: Shard) -> tuple[str | int, ...]:
    return (
        shard.formula,
        shard.order,
        shard.zone,
        shard.method,
        int(shard.negative),
        shard.first,
        shard.stop,
    )
