"""Verdicts, coverage and changes in words."""

import pytest

from gelu_verify.baseline import Folder, record
from gelu_verify.report.site import words
from tests.builders import accuracy, environment, finding, measured, result
from tests.report.site.conftest import entries


@pytest.mark.parametrize(
    ("made", "told"),
    [
        (measured(name="k"), "k keeps the contract cancelling in bf16: at most 2 ULP, at 1, over"),
        (result("crashed", finding("conduct", "failed", "signal 11")), "k crashed while"),
        (result("timed_out"), "k did not finish in time."),
        (result("unavailable"), "k could not be run here."),
        (
            result("failed", finding("a_b", "failed", "9 ULP"), finding("c", "failed", "x")),
            "k breaks the contract cancelling: a b: 9 ULP; 1 more below.",
        ),
        (
            result("known_issue", finding("a", "known_issue", "m")),
            "k keeps the contract cancelling in bf16, apart from 1 known issue",
        ),
    ],
)
def test_the_verdict_is_a_sentence(made, told):
    assert words.verdict(made).startswith(told)
    assert words.verdict(made).endswith(".")


def test_coverage_names_all_inputs_when_they_can_be_counted():
    a = accuracy("oracle").model_copy(update={"inputs": 65536, "exhaustive": True})
    assert words.coverage(a, 16) == "65,536 of 65,536 inputs"
    pairs = a.model_copy(update={"sweep": "pairs", "inputs": 1 << 32})
    assert words.coverage(pairs, 16) == "4,294,967,296 of 4,294,967,296 pairs"
    point = a.worst.model_copy(update={"inputs": {"dy": "1", "x": "1"}})
    backward = a.model_copy(update={"worst": point, "inputs": 131072})
    assert words.coverage(backward, 16) == "131,072 inputs, every bit pattern of x"


def test_change_is_told_from_the_baseline_of_this_class_of_device(tmp_path):
    def against(now, **where):
        folder = Folder(tmp_path / "baselines")
        folder.put(record.of((measured(),), environment(**where)))
        (found,) = entries(now, tmp_path=tmp_path, baselines=folder)
        return words.change(found)

    assert against(measured())[:2] == ("held", "held")
    kind, short, full = against(measured({"tail": 3.0, "centre": 0.5}, tightest="cancelling"))
    assert (kind, short.split()[1]) == ("worse", "worse")
    assert "cancelling, was tail_accurate" in full
    assert against(measured({"tail": 1.0, "centre": 0.5}))[0] == "better"
    assert against(measured(digest="other"))[0] == "other"
    (alone,) = entries(measured(), tmp_path=tmp_path)
    assert words.change(alone)[0] == "none"
