"""Results as Markdown."""

from gelu_verify.report import markdown
from tests.builders import accuracy, finding, result, results

LINK = "https://example.org/issues/1"


def test_failures_and_known_issues_are_listed_when_there_are_some():
    text = markdown.summary(
        results(
            result(
                "failed", finding("accuracy", "failed", "3 of 4 | <b>", reproduce="gelu-verify x")
            ),
            result("known_issue", finding("routes", "known_issue", "0-d", link=LINK)),
            result("passed", simulated=True),
            device="H200",
        )
    )
    assert "## Failures" in text
    assert "- k, gelu, bf16: accuracy: 3 of 4 \\| \\<b\\>\n  `gelu-verify x`" in text
    assert "## Known issues" in text
    assert f"routes: 0-d ({LINK})" in text
    assert "\\* ran in Triton's CPU interpreter (simulated)." in text
    assert "2026-01-01T00:00:00+00:00, H200 (AVX2), Python 3.11, torch 2.11." in text


def test_every_row_has_every_cell_when_names_hold_marks():
    lines = markdown.table(results(result("failed", name="a|b*c_[d]`")))
    cells = [line.replace("\\|", "").count("|") for line in lines]
    assert len(set(cells)) == 1
    assert "a\\|b\\*c\\_\\[d\\]\\`" in lines[2]


def test_mark_is_escaped_when_it_means_something():
    assert markdown.escape("a\nb") == "a b"
    assert markdown.escape("\\_") == "\\\\\\_"


def test_every_way_of_proof_is_named_once_with_its_count():
    text = markdown.summary(
        results(
            result("passed", accuracy=accuracy("certified", "certified on a day")),
            result("passed", accuracy=accuracy("certified", "certified on a day")),
            result("passed", accuracy=accuracy("uncertified", "uncertified: hash 0. Make it.")),
            result("passed", accuracy=accuracy(None)),
        )
    )
    assert text.count("- certified: on a day (2 of 4)") == 1
    assert "- UNCERTIFIED: hash 0. Make it. (1 of 4)" in text
    assert "- certificate: not recorded (1 of 4)" in text
    assert "Exact values:" not in markdown.summary(results(result("failed")))
