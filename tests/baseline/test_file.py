"""Baseline files: what is written is read, and nothing else is."""

import contextlib
import errno
import json
import multiprocessing
import os
import tempfile

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gelu_verify.baseline import file, record
from gelu_verify.errors import UsageError
from tests.builders import environment, finding, measured, result

BASELINE = record.of((measured(),), environment())
OTHER = record.of((measured({"tail": 3.0}),), environment(commit="def"))


@pytest.fixture
def path(tmp_path):
    place = tmp_path / "cpu-avx2" / "k.json"
    file.write(place, BASELINE)
    return place


def changed(path, change):
    """Write the file again with other content, its digest left as it was."""
    content = json.loads(path.read_text())
    change(content)
    path.write_text(json.dumps(content))


def test_baseline_is_the_same_when_written_and_read(path):
    assert file.read(path) == BASELINE
    assert path.read_text() == file.text(BASELINE)


def test_text_has_one_order_and_short_lines_for_a_diff():
    lines = file.text(BASELINE).splitlines()
    assert len(lines) > 60
    assert max(map(len, lines)) < 120
    assert '  "max_error_ulp": 2.0,' in file.text(BASELINE)


def test_of_refuses_a_kernel_that_breaks_its_contract():
    with pytest.raises(UsageError, match="that is failed, expected one that keeps cancelling"):
        record.of((measured(), result("failed", finding("accuracy", "failed", "m"))), environment())


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda c: c["measurements"][0]["elementwise"].update(max_error_ulp=1.0), "was altered"),
        (lambda c: c["provenance"].update(commit="abd"), "was altered"),
        (lambda c: c.pop("digest"), "was altered"),
        (lambda c: c.update(digest=None), "was altered"),
        (lambda c: c.pop("schema_version"), "without a schema_version"),
        (lambda c: c.update(schema_version="1"), "without a schema_version"),
        (lambda c: c.update(schema_version=True), "without a schema_version"),
        (lambda c: c.update(schema_version=10**30), "Upgrade gelu_verify"),
    ],
)
def test_read_refuses_a_file_that_was_altered(path, change, message):
    changed(path, change)
    with pytest.raises(UsageError, match=message) as raised:
        file.read(path)
    assert str(path) in str(raised.value)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize("part", [0.0, 0.3, 0.99])
def test_read_refuses_a_file_that_was_cut(path, part):
    text = path.read_text()
    path.write_text(text[: int(len(text) * part)])
    with pytest.raises(UsageError, match="expected a JSON object"):
        file.read(path)


def test_read_refuses_a_key_that_is_there_twice(path):
    text = path.read_text()
    path.write_text(
        text.replace('"device_class"', '"device_class": "cpu-avx512",\n "device_class"')
    )
    with pytest.raises(UsageError, match="a key is there twice"):
        file.read(path)


@pytest.mark.parametrize(
    "text", ["[" * 100_000, '{"a":' * 100_000, "9" * 10_000, "NaN", '{"schema_version": 1e999}']
)
def test_read_refuses_what_would_hurt_a_reader(path, text):
    path.write_text(text)
    with pytest.raises(UsageError, match="baseline: got"):
        file.read(path)


def test_read_is_bounded_when_the_file_never_ends():
    with pytest.raises(UsageError, match="expected a file"):
        file.read(file.Path("/dev/zero"))


def test_read_says_which_file_is_missing(tmp_path):
    with pytest.raises(UsageError, match=r"gone\.json, No such file or directory"):
        file.read(tmp_path / "gone.json")


@given(st.binary(max_size=300))
def test_read_never_fails_otherwise_when_the_bytes_are_any(content):
    with tempfile.TemporaryDirectory() as folder:
        place = file.Path(folder, "b.json")
        place.write_bytes(content)
        with pytest.raises(UsageError):
            file.read(place)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=9), inner),
    max_leaves=12,
)


def replaced(node, path, value):
    """Return JSON with another value at a place; indices wrap around."""
    if not path or not isinstance(node, dict | list) or not node:
        return value
    index = path[0] % len(node)
    key = sorted(node)[index] if isinstance(node, dict) else index
    copy = dict(node) if isinstance(node, dict) else list(node)
    copy[key] = replaced(node[key], path[1:], value)
    return copy


@given(st.lists(st.integers(0, 50), min_size=1, max_size=6), JSON)
def test_read_gives_a_baseline_or_a_usage_error_when_a_part_is_forged(path, value):
    """Whoever recomputes the digest gets as far as the record, and no further."""
    content = json.loads(file.text(BASELINE))
    content.pop("digest")
    content = replaced(content, path, value)
    if not isinstance(content, dict):
        return
    try:
        text = json.dumps(content | {"digest": file.digest(content)})
    except ValueError:
        return
    with tempfile.TemporaryDirectory() as folder:
        place = file.Path(folder, "b.json")
        place.write_text(text)
        with contextlib.suppress(UsageError):
            assert isinstance(file.read(place), record.Baseline)


@pytest.mark.parametrize("call", ["write", "fsync", "replace", "mkstemp", "chmod"])
@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EACCES, errno.EROFS])
def test_old_baseline_stays_whole_when_writing_fails(path, monkeypatch, call, number):
    def fail(*_arguments, **_options):
        raise OSError(number, os.strerror(number))

    class Full:
        def __init__(self, real):
            self.real = real

        def __enter__(self):
            return self

        def __exit__(self, *_):
            self.real.close()

        write = staticmethod(fail)

    if call == "write":
        real = os.fdopen
        monkeypatch.setattr(os, "fdopen", lambda *a, **k: Full(real(*a, **k)))
    elif call == "mkstemp":
        monkeypatch.setattr(tempfile, "mkstemp", fail)
    elif call == "chmod":
        monkeypatch.setattr(file.Path, "chmod", fail)
    else:
        monkeypatch.setattr(os, call, fail)
    with pytest.raises(UsageError, match=os.strerror(number)) as raised:
        file.write(path, OTHER)
    monkeypatch.undo()
    assert "\n" not in str(raised.value)
    assert file.read(path) == BASELINE
    assert os.listdir(path.parent) == [path.name]


def _write_again_and_again(path, which, times):
    for _ in range(times):
        file.write(path, (BASELINE, OTHER)[which])


def test_reader_sees_one_or_the_other_when_two_processes_write(path):
    context = multiprocessing.get_context("fork")
    writers = [context.Process(target=_write_again_and_again, args=(path, n, 60)) for n in (0, 1)]
    for writer in writers:
        writer.start()
    seen = set()
    while any(writer.is_alive() for writer in writers):
        seen.add(file.read(path).provenance.commit)
    for writer in writers:
        writer.join()
        assert writer.exitcode == 0
    assert seen <= {"abc", "def"}
    assert file.read(path) in (BASELINE, OTHER)
    assert os.listdir(path.parent) == [path.name]
