"""Every kind of record that is committed: read, written and read again, and rendered."""

import io
from pathlib import Path

import pytest
from rich.console import Console

from gelu_verify.convergence.records import Convergence
from gelu_verify.records import Results, SelftestResults
from gelu_verify.report import alarms, convergence, markdown, selftest, terminal
from gelu_verify.statistics.run import GateAlarms

REPORTS = Path(__file__).parents[2] / "reports"
#: Folder to the kind of its records, their Markdown, and their form on a terminal, if any.
KINDS = {
    "cpu": (Results, markdown.summary, terminal.show),
    "h200": (Results, markdown.summary, terminal.show),
    "selftest": (SelftestResults, selftest.page, selftest.show),
    "convergence": (Convergence, convergence.as_markdown, convergence.show),
    "statistics": (GateAlarms, alarms.document, None),
}
#: Markdown beside a record that is its rendering, and nothing written by hand.
RENDERED = ("selftest/", "statistics/", "convergence/", "cpu/fused", "h200/fused", "h200/pairs")

FILES = [
    path
    for folder in KINDS
    for path in sorted((REPORTS / folder).glob("*.json"))
    if '"environment"' in path.read_text() and '"census"' not in path.read_text()
]
NAMES = [path.relative_to(REPORTS).as_posix() for path in FILES]


@pytest.mark.parametrize("name", NAMES)
def test_a_record_is_the_same_when_read_and_written_and_has_its_renderings(name):
    kind, document, show = KINDS[name.partition("/")[0]]
    record = kind.model_validate_json((REPORTS / name).read_text())
    text = record.model_dump_json()
    assert kind.model_validate_json(text).model_dump_json() == text
    rendered = document(record)
    told = io.StringIO()
    if show is not None:
        show(Console(file=told, width=100), record)
        assert told.getvalue().strip()
    labels = {k.name for k in getattr(record, "kernels", ())}
    for label in labels:
        assert markdown.escape(label) in rendered
        assert label in told.getvalue()
    beside = (REPORTS / name).with_suffix(".md")
    if name.startswith(RENDERED) and beside.exists():
        assert beside.read_text() == rendered


def test_no_kind_of_record_is_without_a_file():
    assert {name.partition("/")[0] for name in NAMES} == set(KINDS)
