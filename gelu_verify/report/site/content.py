"""What a site is made of: the records of some files, by what they are of.

A kind of record with pages of its own has a field here, a line in ``_KINDS`` and, in
:mod:`gelu_verify.report.site.pages`, a line in ``_others``.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from gelu_verify.baseline import Folder
from gelu_verify.convergence.records import Convergence
from gelu_verify.errors import UsageError
from gelu_verify.gate.record import GateResults
from gelu_verify.records import Record, Results, SelftestResults
from gelu_verify.report import files
from gelu_verify.report.site import entry
from gelu_verify.report.site.entry import Entry
from gelu_verify.untrusted import read_json

#: A field that a kind of file alone has, and the kind; the first that is there decides.
_KINDS: tuple[tuple[str, type[Record]], ...] = (
    ("defects", SelftestResults),
    ("profile", GateResults),
    ("endpoints", Convergence),
)


@dataclass
class Content:
    """Records in the order of their files.

    entries: results of ``check`` and ``gate``, a page each; selftests, trainings (of ``converge``):
    with the names of their files. sources: file to the SHA-256 of its bytes.
    """

    entries: list[Entry] = field(default_factory=list)
    selftests: list[tuple[str, SelftestResults]] = field(default_factory=list)
    trainings: list[tuple[str, Convergence]] = field(default_factory=list)
    sources: dict[str, str] = field(default_factory=dict)


def read(paths: Iterable[Path], baselines: Folder) -> Content:
    """Return the records of files of ``check``, ``gate``, ``selftest`` and ``converge``.

    Raises :class:`UsageError` for a file that is none, or where there is no result at all.
    """
    found, taken = Content(), set[str]()
    for path in paths:
        known = read_json(path, "results", files.LARGEST)
        kind = next((kind for name, kind in _KINDS if name in known), Results)
        record = files.record(known, kind, path)
        source = "/".join(path.parts[-2:])
        if isinstance(record, SelftestResults):
            found.selftests.append((source, record))
        elif isinstance(record, Convergence):
            found.trainings.append((source, record))
        else:
            assert isinstance(record, Results)
            found.entries += entry.of(record, source, baselines, taken)
        found.sources[_named(path)] = digest(path)
    if not (found.entries or found.selftests or found.trainings):
        raise UsageError("report: got no result, expected at least one. Run gelu-verify check.")
    return found


def _named(path: Path) -> str:
    """Return the file's name without the machine's folders."""
    return "/".join(path.parts[-2:]) if path.is_absolute() else path.as_posix()


def digest(path: Path) -> str:
    """Return the SHA-256 of a file's bytes, hexadecimal."""
    return hashlib.sha256(path.read_bytes()).hexdigest()
