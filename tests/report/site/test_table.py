"""Rows of the index."""

import math

import pytest

from gelu_verify.report.site import table
from tests.builders import measured, result
from tests.report.site.conftest import entries


@pytest.mark.parametrize(
    ("size", "expected"),
    [(0.0, "level-0"), (0.5, "level-0"), (0.50001, "level-1"), (4.0, "level-2"), (4.1, "level-3"),
     (1e17, "level-5"), (math.inf, "level-5"), (math.nan, "level-5")],
)  # fmt: skip
def test_the_color_follows_the_error_and_nan_is_the_worst(size, expected):
    assert table.level(size) == expected


def test_the_legend_names_each_color_once():
    assert [kind for kind, _ in table.legend()] == [f"level-{i}" for i in range(6)]


def test_a_row_has_a_cell_for_each_region_and_dashes_where_there_is_no_figure(tmp_path):
    one, other = (table.row(e) for e in entries(measured(), result("failed"), tmp_path=tmp_path))
    assert [cell.text for cell in one.regions] == ["-", "2", "-", "0.5", "-", "-"]
    assert [cell.kind for cell in one.regions] == ["", "level-2", "", "level-0", "", ""]
    assert one.sweep.text == "quick: 1 of 65,536 inputs"
    assert (other.largest.text, other.bias.text, other.sweep.text) == ("-", "-", "-")
