"""Results as entries of a site."""

import pytest

from gelu_verify.baseline import Folder
from gelu_verify.errors import UsageError
from gelu_verify.gate.record import Against, GateResults
from gelu_verify.report import files
from gelu_verify.report.site import content
from tests.builders import measured, result, results
from tests.report import gates
from tests.report.site.conftest import MARKUP, entries


def test_a_gates_file_is_read_with_its_verdicts(tmp_path):
    verdict = gates.compared(Against.REGRESSED)
    made = gates.gate((measured(),), compared=(verdict,))
    path = tmp_path / "gate.json"
    files.put(path, made.model_dump_json())
    found = content.read([path], Folder(tmp_path / "none")).entries
    assert [(e.result, e.compared) for e in found] == [(made.kernels[0], verdict)]
    assert files.read(path, GateResults) == made


def test_slugs_are_safe_and_differ_when_names_do_not(tmp_path):
    kernels = [measured(name=n) for n in ("../../etc/passwd", "a", "a", "A", MARKUP, "x" * 500)]
    slugs = [e.slug for e in entries(*kernels, tmp_path=tmp_path)]
    assert len({slug.lower() for slug in slugs}) == 6
    assert all("/" not in s and "<" not in s and not s.startswith(".") for s in slugs)
    assert all(len(s) < 150 for s in slugs)


def test_the_device_is_named_as_a_person_would(tmp_path):
    (cpu,) = entries(measured(), tmp_path=tmp_path)
    (gpu,) = entries(measured(device="cuda"), tmp_path=tmp_path, device="NVIDIA H200")
    assert (cpu.device, gpu.device) == ("CPU AVX2", "NVIDIA H200")


def test_a_file_of_something_else_and_no_result_at_all_are_refused(tmp_path):
    (tmp_path / "other.json").write_text('{"a": 1}')
    with pytest.raises(UsageError, match="not a results file"):
        content.read([tmp_path / "other.json"], Folder(tmp_path))
    files.write(results(), tmp_path / "empty.json", None)
    with pytest.raises(UsageError, match="got no result"):
        content.read([tmp_path / "empty.json"], Folder(tmp_path))
    with pytest.raises(UsageError, match="got no result"):
        content.read([], Folder(tmp_path))


def test_a_result_has_no_baseline_when_there_is_none(tmp_path):
    (found,) = entries(result("failed"), tmp_path=tmp_path)
    assert (found.before, found.compared) == (None, None)
