"""The committed site is of the committed records: `make site` renews it."""

import json
import re

import pytest

from gelu_verify.report.site import content, pages
from tests.report.site.conftest import REPORTS, ROOT

SITE = REPORTS / "site"
STALE = "Run: make site"

pytestmark = pytest.mark.skipif(
    not (SITE / pages.MANIFEST).exists(), reason="no site is committed here"
)


def test_the_site_is_of_the_records_as_they_are():
    sources = json.loads((SITE / pages.MANIFEST).read_text())["sources"]
    kept = {
        path.relative_to(ROOT).as_posix(): content.digest(path)
        for folder in ("cpu", "h200")
        for path in (REPORTS / folder).glob("*.json")
        if '"kernels"' in path.read_text()
    }
    kept["reports/selftest/cpu.json"] = content.digest(REPORTS / "selftest" / "cpu.json")
    assert {name: sources.get(name) for name in kept} == kept, STALE


def test_every_link_of_the_index_leads_to_a_page_and_no_page_is_left_over():
    linked = set(re.findall(r'href="(kernels/[^"]+)"', (SITE / "index.html").read_text()))
    there = {p.relative_to(SITE).as_posix() for p in (SITE / "kernels").iterdir()}
    assert linked == there, STALE


def test_the_site_is_small_enough_to_be_committed_and_each_page_to_be_opened():
    sizes = {p: p.stat().st_size for p in SITE.rglob("*") if p.is_file()}
    assert sum(sizes.values()) < 30_000_000  # a quarter of it once packed
    assert max(size for p, size in sizes.items() if p.parent.name == "kernels") < 500_000
