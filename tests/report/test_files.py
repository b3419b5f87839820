"""Result files: whole or not at all."""

import errno
import os
import stat
import tempfile

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gelu_verify.errors import UsageError
from gelu_verify.records import Results
from gelu_verify.report import files
from tests.builders import result, results

SAVED = results(result("passed"))


def test_results_are_the_same_when_written_and_read(tmp_path):
    path = tmp_path / "r.json"
    files.write(SAVED, path, tmp_path / "r.md")
    assert files.read(path) == SAVED
    assert (tmp_path / "r.md").read_text().startswith("# gelu_verify results\n")
    assert sorted(os.listdir(tmp_path)) == ["r.json", "r.md"]


def test_stdout_is_used_when_the_path_is_a_dash(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    files.write(SAVED, files.Path("-"), None)
    assert Results.model_validate_json(capsys.readouterr().out) == SAVED
    files.write(SAVED, None, files.Path("-"))
    assert capsys.readouterr().out.startswith("# gelu_verify results\n")
    assert os.listdir(tmp_path) == []


def test_folder_is_made_when_it_is_missing(tmp_path):
    files.require_writable(tmp_path / "a" / "b" / "r.json")
    assert (tmp_path / "a" / "b").is_dir()


def test_device_is_written_to_and_stays_when_it_is_the_file(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    files.require_writable(pipe)
    files.write(SAVED, pipe, None)
    assert os.read(reader, 20).startswith(b"{")
    os.close(reader)
    assert stat.S_ISFIFO(pipe.stat().st_mode)


def test_link_stays_when_the_file_is_linked_to(tmp_path):
    (tmp_path / "real").mkdir()
    target = tmp_path / "real" / "r.json"
    target.write_text("old")
    link = tmp_path / "r.json"
    link.symlink_to(target)
    files.write(SAVED, link, None)
    assert link.is_symlink()
    assert files.read(target) == SAVED


@pytest.mark.parametrize("place", ["/proc/r.json", "/proc/self/r.json", "."])
def test_usage_error_is_raised_when_a_place_cannot_be_written(place, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UsageError, match="output: got"):
        files.require_writable(files.Path(place))
    with pytest.raises(UsageError, match="output: got"):
        files.write(SAVED, files.Path(place), None)


@pytest.mark.parametrize("text", ["", "{}", "junk", '{"schema_version": 1}', "[1, 2]"])
def test_usage_error_is_raised_when_a_file_holds_no_results(text, tmp_path):
    path = tmp_path / "r.json"
    path.write_text(text)
    with pytest.raises(UsageError, match="not a results file of this version"):
        files.read(path)


def test_usage_error_is_raised_when_a_file_cannot_be_read(tmp_path):
    with pytest.raises(UsageError, match="No such file"):
        files.read(tmp_path / "none.json")
    (tmp_path / "bytes").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(UsageError, match="expected text in UTF-8"):
        files.read(tmp_path / "bytes")


@given(st.binary(max_size=200) | st.just(b"[" * 100_000) | st.just(b'{"kernels":' * 9_999))
def test_read_refuses_any_other_bytes_in_one_line(content):
    with tempfile.TemporaryDirectory() as folder:
        path = files.Path(folder, "r.json")
        path.write_bytes(content)
        with pytest.raises(UsageError) as raised:
            files.read(path)
        assert "\n" not in str(raised.value)


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EACCES, errno.EROFS])
def test_old_file_stays_whole_when_the_disk_is_full(tmp_path, monkeypatch, number):
    path = tmp_path / "r.json"
    files.write(SAVED, path, None)

    def fail(*_):
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(UsageError, match=os.strerror(number)):
        files.write(results(), path, None)
    assert files.read(path) == SAVED
    assert os.listdir(tmp_path) == ["r.json"]
