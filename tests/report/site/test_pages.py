"""Pages as files: sizes, escapes, and what is missing."""

import hashlib
import json
import re
import sys

import pytest

from gelu_verify.baseline import Folder
from gelu_verify.errors import UnavailableError, UsageError
from gelu_verify.records import SelftestResults
from gelu_verify.report import files
from gelu_verify.report.site import content, pages
from gelu_verify.report.site.content import Content
from tests.builders import finding, measured, result
from tests.report.site.conftest import MARKUP, REPORTS, entries

pytest.importorskip("jinja2", reason="the extra report is missing")


def test_a_page_is_below_500_kilobytes_and_asks_for_nothing_elsewhere(site):
    written = sorted(site.rglob("*.html"))
    assert len(written) == 11 + 2 + 3  # results, index and comparison, trainings
    for path in written:
        text = path.read_text()
        assert len(text.encode()) < 500_000
        loaded = re.findall(r'<(?:script|link|img)[^>]*(?:src|href)="([^"]*)"', text)
        assert loaded
        assert all(re.match(r"data:,|(\.\./)?assets/", address) for address in loaded)


def test_no_markup_of_a_record_reaches_a_page(site):
    for path in site.rglob("*.html"):
        assert "<img" not in path.read_text()
        assert "<script>alert" not in path.read_text()


def test_the_verdict_comes_before_everything_else(site):
    text = (site / "kernels" / "torch-erf.gelu.erf.fp32.cpu-avx2.html").read_text()
    sentence = r"torch-erf keeps the contract cancelling in fp32, apart from \d known issues"
    first = re.search(sentence, text).start()
    assert first < text.index("Findings") < text.index("Provenance")
    assert "4,294,967,296 of 4,294,967,296 inputs" in text


@pytest.mark.parametrize("status", ["failed", "crashed", "timed_out", "unavailable"])
def test_a_result_without_any_figure_has_a_page(tmp_path, status):
    made = result(status, finding("conduct", "failed", "m"), special=False)
    assert pages.write(Content(entries(made, tmp_path=tmp_path)), tmp_path / "out") == 3


def test_a_link_that_is_no_web_address_stays_text(tmp_path):
    made = result("failed", finding("a", "failed", "m", link="javascript:alert(1)"),
                  finding("b", "failed", "m", link="https://example.org/1"))  # fmt: skip
    pages.write(Content(entries(made, tmp_path=tmp_path)), tmp_path / "out")
    (page,) = (tmp_path / "out" / "kernels").iterdir()
    assert re.findall(r'<a href="(?!\.\./|#)([^"]*)"', page.read_text()) == [
        "https://example.org/1"
    ]


def test_a_missing_library_is_named(tmp_path, monkeypatch):
    found = entries(measured(name=MARKUP), tmp_path=tmp_path)
    monkeypatch.setitem(sys.modules, "jinja2", None)
    with pytest.raises(UnavailableError, match=r"no Jinja2.*gelu_verify\[report\]"):
        pages.write(Content(found), tmp_path / "out")


def test_a_folder_that_is_a_file_is_refused(tmp_path):
    (tmp_path / "out").write_text("")
    with pytest.raises(UsageError, match="output"):
        pages.write(Content(entries(measured(), tmp_path=tmp_path)), tmp_path / "out")


def test_a_selftest_has_its_matrix_on_a_page_that_every_page_leads_to(tmp_path):
    path = REPORTS / "selftest" / "cpu.json"
    known = SelftestResults.model_validate_json(path.read_text())
    found = content.read([path], Folder(tmp_path / "none"))
    assert files.read(path, SelftestResults).model_dump_json() == known.model_dump_json()
    found.entries += entries(measured(), tmp_path=tmp_path)
    pages.write(found, tmp_path / "out")
    text = (tmp_path / "out" / "matrix.html").read_text()
    assert text.count("<tr>") - text.count("<thead>") == len(known.defects) + len(known.sounds)
    assert all(f"<code>{row.label}</code>" in text for row in known.defects)
    for page in (tmp_path / "out").rglob("*.html"):
        assert re.search(r'href="(\.\./)?matrix.html"', page.read_text())


def test_the_same_records_give_the_same_bytes_and_are_named(tmp_path):
    path = REPORTS / "cpu" / "exhaustive_fp32.json"
    for name in ("one", "other"):
        pages.write(content.read([path], Folder.read(REPORTS / "baselines")), tmp_path / name)
    one, other = (
        {p.relative_to(tmp_path / name): p.read_bytes() for p in (tmp_path / name).rglob("*.*")}
        for name in ("one", "other")
    )
    assert one == other
    sources = json.loads((tmp_path / "one" / pages.MANIFEST).read_text())["sources"]
    assert list(sources.values()) == [hashlib.sha256(path.read_bytes()).hexdigest()]
