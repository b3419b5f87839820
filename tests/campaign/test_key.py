"""The key of a campaign: its kernel's source and its device, found without running anything."""

import importlib
from pathlib import Path

from gelu_verify.campaign import key
from gelu_verify.kernels.spec import KernelSpec
from tests.campaign import campaigns


def test_source_of_a_kernel_is_found_without_importing_its_package(tmp_path, monkeypatch):
    hostile = tmp_path / "hostile"
    (hostile / "inner").mkdir(parents=True)
    (hostile / "__init__.py").write_text("raise SystemExit(7)")
    (hostile / "inner" / "k.py").write_text("k = 1")
    monkeypatch.syspath_prepend(tmp_path)
    assert key.origin("hostile") == hostile / "__init__.py"
    assert key.origin("hostile.k") is None
    (hostile / "k.py").write_text("k = 1")
    importlib.invalidate_caches()
    assert key.origin("hostile.k") == hostile / "k.py"
    assert key.origin("hostile.k.more") is None
    assert key.origin("no_such_module_xyz.k") is None
    assert key.origin("tests.campaign.campaigns") == Path(campaigns.__file__)


def test_source_is_found_when_packages_have_no_init_file(tmp_path, monkeypatch):
    folder = tmp_path / "outer_xyz" / "inner"
    folder.mkdir(parents=True)
    (folder / "k.py").write_text("k = 1")
    monkeypatch.syspath_prepend(tmp_path)
    assert key.origin("outer_xyz.inner.k") == folder / "k.py"


def test_kernel_in_another_language_is_known_by_its_sources(tmp_path, monkeypatch):
    (tmp_path / "loader_xyz" / "csrc").mkdir(parents=True)
    (tmp_path / "loader_xyz" / "k.py").write_text("k = 1")
    source = tmp_path / "loader_xyz" / "csrc" / "k.cpp"
    source.write_text("one")
    monkeypatch.syspath_prepend(tmp_path)
    spec = KernelSpec(name="k", target="torch.ops.n.k", imports="loader_xyz.k")
    before = key._kernel_hash(spec)
    source.write_text("two")
    assert before != key._kernel_hash(spec) != ""
    assert key._kernel_hash(KernelSpec(name="k", target="torch.ops.n.k")) == ""


def test_device_that_is_absent_has_a_name_of_its_own():
    assert key._device_name("cuda:99") == "cuda:99, absent"
