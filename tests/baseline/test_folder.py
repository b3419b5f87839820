import os

import pytest

from gelu_verify.baseline import Folder, Key, acceptance, device_class, file, record
from gelu_verify.errors import UsageError
from tests.builders import environment, finding, measured, result, results

AVX2, AVX512 = environment(), environment(instruction_set="AVX512")
BACKWARD = {"operator": "gelu_backward", "via": "autograd"}


def baseline(env=AVX2, *more, **claims):
    return record.of((measured(**claims), *more), env)


def test_device_class_is_what_decides_the_bits():
    assert device_class(AVX512, "cpu") == "cpu-avx512"
    on_gpu = environment(device="NVIDIA H200")
    assert device_class(on_gpu, "cuda:1") == "cuda-nvidia-h200"
    assert device_class(on_gpu, "cpu") == "cpu-avx2"


@pytest.mark.parametrize("kernel", ["../../etc/passwd", "a/b.py:f", "C:\\x.py:f", "é" * 400, "."])
def test_file_name_stays_in_the_folder_whatever_the_kernel(kernel):
    key = Key(kernel=kernel, operator="gelu", formula="erf", format="bf16")
    assert os.path.basename(key.file_name) == key.file_name
    assert not key.file_name.startswith(".")
    assert len(key.file_name) < 200


def test_file_names_differ_when_kernels_differ_only_in_marks():
    names = {
        Key(kernel=k, operator="gelu", formula="erf", format="bf16").file_name
        for k in ("a.py:f", "a_py:f", "a-py:f", "a-py-f")
    }
    assert len(names) == 4


def test_folder_finds_its_own_class_first(tmp_path):
    folder = Folder.read(tmp_path / "none")
    assert not folder.found
    other, own = baseline(AVX512), baseline(AVX2)
    assert folder.put(other)
    assert folder.get("cpu-avx2", own.key) == other  # better than nothing, with a warning
    assert folder.put(own)
    again = Folder.read(folder.path)
    assert again.get("cpu-avx2", own.key) == own
    assert again.get("cpu-avx512", own.key) == other
    assert again.keys() == [own.key]


def test_put_leaves_the_file_when_only_date_and_commit_changed(tmp_path):
    folder = Folder.read(tmp_path)
    folder.put(baseline())
    place = folder.place("cpu-avx2", baseline().key)
    before = place.read_text()
    later = environment(date="2026-02-02T00:00:00+00:00", commit="def")
    assert not Folder.read(tmp_path).put(baseline(later))
    assert place.read_text() == before
    assert Folder.read(tmp_path).put(baseline(environment(libraries={"torch": "2.12"})))


def test_read_refuses_a_file_at_another_ones_place(tmp_path):
    folder = Folder.read(tmp_path)
    folder.put(baseline())
    place = folder.place("cpu-avx2", baseline().key)
    (tmp_path / "cpu-avx512").mkdir()
    place.rename(tmp_path / "cpu-avx512" / place.name)
    with pytest.raises(UsageError, match="Move it back"):
        Folder.read(tmp_path)


def test_damaged_file_ends_the_reading_unless_it_is_to_be_replaced(tmp_path):
    folder = Folder.read(tmp_path)
    folder.put(baseline())
    folder.place("cpu-avx2", baseline().key).write_text("{")
    with pytest.raises(UsageError, match="expected a JSON object"):
        Folder.read(tmp_path)
    assert Folder.read(tmp_path, lenient=True).put(baseline())
    assert Folder.read(tmp_path).found


def test_accept_groups_a_kernel_with_its_backward_and_refuses_what_is_broken(tmp_path):
    folder = Folder.read(tmp_path)
    bad = result("failed", finding("accuracy", "failed", "m"), name="bad")
    absent = result("unavailable", name="gone", special=False)
    done = acceptance.accept(
        results(measured(), measured(**BACKWARD), bad, absent, measured(name="old", replayed=3)),
        folder,
    )
    assert [path.name for path in done.written] == [baseline().key.file_name]
    (only,) = Folder.read(tmp_path).found.values()
    assert [m.via for m in only.measurements] == [None, "autograd"]
    assert done.exit_status == 1
    assert "bad gelu bf16 that is failed" in "".join(done.refused)
    assert done.absent == ["gone gelu erf bf16 on cpu"]
    assert acceptance.accept(results(measured(), measured(**BACKWARD)), folder).same == 1
    assert acceptance.accept(results(absent), folder).exit_status == 3


def test_remove_deletes_every_class_of_a_key(tmp_path):
    folder = Folder.read(tmp_path)
    folder.put(baseline(AVX2))
    folder.put(baseline(AVX512))
    assert len(folder.remove(baseline().key)) == 2
    assert not Folder.read(tmp_path).found


def test_older_schema_is_read():
    """The files of every earlier version stay readable."""
    old = file.read(file.Path(__file__).parent / "golden" / "v1.json")
    (forward, backward) = old.measurements
    assert forward.elementwise.max_error_ulp == 254.93360898908952
    assert backward.via == "autograd"
