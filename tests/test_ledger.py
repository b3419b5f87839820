"""The ledger: whole shards or none, one campaign a file, damage refused."""

import re
import sqlite3

import pytest

from gelu_verify import ledger as module
from gelu_verify.errors import GeluVerifyError
from gelu_verify.ledger import Ledger, LedgerRefused, key_digest

KEY = {"kernel": "k", "shards": "4"}


@pytest.fixture
def path(tmp_path):
    file = tmp_path / "new folder" / "ledger.sqlite"
    ledger = Ledger(file, KEY)
    for number in (2, 0, 1):
        ledger.record(number, f"content {number} " * 2000)
    ledger.close()
    return file


def test_shards_are_in_order_when_opened_again(path):
    ledger = Ledger(path, KEY)
    assert ledger.done() == {0, 1, 2}
    assert [text.split()[1] for text in ledger.contents()] == ["0", "1", "2"]
    ledger.close()


def refused(path, key=KEY):
    with pytest.raises(LedgerRefused) as caught:
        Ledger(path, key)
    assert caught.value.exit_status == 2
    assert "\n" not in str(caught.value)
    assert "Delete it to start afresh" in str(caught.value)
    return str(caught.value)


def test_ledger_is_refused_when_it_is_of_another_campaign(path):
    assert "got kernel = 'k' (this run: 'other')" in refused(path, KEY | {"kernel": "other"})
    assert "got device = None" in refused(path, KEY | {"device": "cpu"})


def test_ledger_is_refused_when_it_was_cut_short(path):
    content = path.read_bytes()
    path.write_bytes(content[: len(content) // 2])
    refused(path)


def test_ledger_is_refused_when_bytes_changed(path):
    content = path.read_bytes().replace(b"content 1 ", b"content 7 ", 1)
    path.write_bytes(content)
    assert "an altered shard 1" in refused(path)


@pytest.mark.parametrize(
    ("statement", "number"),
    [
        ("UPDATE shard SET content = content || ' ' WHERE number = 1", 1),
        ("UPDATE shard SET number = 9 WHERE number = 2", 9),
        ("UPDATE shard SET digest = 'x' WHERE number = 0", 0),
    ],
)
def test_ledger_is_refused_when_a_row_was_altered(path, statement, number):
    db = sqlite3.connect(path)
    with db:
        db.execute(statement)
    db.close()
    assert f"an altered shard {number}" in refused(path)


def test_ledger_is_refused_when_the_file_is_no_ledger(tmp_path):
    text = tmp_path / "notes.txt"
    text.write_text("no ledger\n" * 100)
    assert "SQLite cannot use" in refused(text)
    assert text.read_text().startswith("no ledger")
    assert "SQLite cannot use" in refused(tmp_path)
    assert "SQLite cannot use" in refused(text / "under a file")


def test_ledger_is_refused_when_the_database_is_of_something_else(tmp_path):
    file = tmp_path / "other.sqlite"
    with sqlite3.connect(file) as db:
        db.execute("CREATE TABLE history (url TEXT)")
    before = file.read_bytes()
    assert "a database of something else (history)" in refused(file)
    assert file.read_bytes() == before


def test_a_full_disk_is_one_line(path):
    ledger = Ledger(path, KEY)
    ledger._db.execute("PRAGMA query_only = ON")
    with pytest.raises(GeluVerifyError, match="expected a file that can be written"):
        ledger.record(3, "more")
    ledger.close()


def test_day_it_began_stays_when_opened_again(path, monkeypatch):
    monkeypatch.setattr(module, "_today", lambda: "1999-01-01")
    with Ledger(path, KEY) as ledger:
        assert re.fullmatch(r"20\d\d-\d\d-\d\d", ledger.started)
    with pytest.raises(sqlite3.ProgrammingError):
        ledger.done()
    with Ledger(path.with_name("later"), KEY) as ledger:
        assert ledger.started == "1999-01-01"


def test_keys_have_different_names_when_they_differ():
    assert key_digest(KEY) == key_digest(dict(reversed(KEY.items())))
    assert key_digest(KEY) != key_digest(KEY | {"kernel": "other"})
