"""Fates: what was found against what the catalogue states; exit status and pages."""

import pytest

from gelu_verify.records import Fate, SelftestResults, UsualVerdict
from gelu_verify.report import catches, publish, selftest
from gelu_verify.selftest import catalogue, verdict
from gelu_verify.selftest.entry import Kind, defect, sound
from tests.builders import environment, finding, result


@defect(Kind.TAIL, report="a/b#1", rejected_by={"accuracy": "collapse"}, unseen_because="small")
def loses_the_tail(x):
    """Loses the tail."""
    return x


@sound(contract="tail_accurate")
def is_right(x):
    """Is right."""
    return x


def usual(*, passes):
    return (UsualVerdict(test="1e-3", passes=passes, figure=1e-4),)


def row(*findings, status="failed", passes=True):
    return verdict.of_defect(loses_the_tail.entry, result(status, *findings), usual(passes=passes))


def results(*defects, sounds=()):
    return SelftestResults(
        environment=environment(), profile="quick", device="cpu", seconds=1.0,
        defects=defects, sounds=sounds,
    )  # fmt: skip


STATED = finding("accuracy", "failed", "12 break: collapse", strength=7.0)


def test_defect_is_killed_when_the_stated_check_gives_the_stated_reason():
    found = row(STATED, finding("routes", "failed", "single: differs"))
    assert found.fate is Fate.KILLED
    assert [(c.check, c.stated, c.strength) for c in found.caught_by] == [
        ("accuracy", True, 7.0),
        ("routes", False, None),
    ]
    assert results(found).exit_status == 0


@pytest.mark.parametrize(
    ("findings", "status", "fate"),
    [
        ((finding("accuracy", "failed", "12 break: overflow"),), "failed", Fate.OTHER_REASON),
        ((finding("routes", "failed", "collapse"),), "failed", Fate.OTHER_REASON),
        ((finding("accuracy", "noted", "collapse"),), "failed", Fate.OTHER_REASON),
        ((finding("accuracy", "passed", "collapse"),), "passed", Fate.SURVIVED),
        ((finding("accuracy", "known_issue", "collapse"),), "known_issue", Fate.SURVIVED),
    ],
)
def test_status_is_1_when_a_defect_is_not_rejected_for_its_reason(findings, status, fate):
    found = row(*findings, status=status)
    assert found.fate is fate
    assert results(found).exit_status == 1
    assert results(row(STATED), found).exit_status == 1
    assert fate.value in selftest.page(results(found))


def test_status_is_3_when_nothing_could_be_run():
    missing = row(finding("loading", "skipped", "no CUDA"), status="unavailable")
    assert missing.fate is Fate.NOT_RUN
    assert results(missing).exit_status == 3
    assert results(missing, row(STATED)).exit_status == 0
    assert "| not run here | - |" in selftest.page(results(missing, row(STATED)))


def test_status_is_1_when_the_statement_on_the_usual_test_is_wrong():
    found = row(STATED, passes=False)
    assert results(found).misjudged == ("loses-the-tail",)
    assert results(found).exit_status == 1
    assert results(found, row(STATED)).misjudged == ()  # it passes in one of the formats
    assert "states the opposite" in selftest.page(results(found))


def test_sound_kernel_is_flagged_when_one_seed_of_many_fails():
    held, failed = result("passed"), result("failed", finding("routes", "failed", "differs"))
    accepted = verdict.of_sound(is_right.entry, [held, held], usual(passes=True))
    flagged = verdict.of_sound(is_right.entry, [held, failed, held], usual(passes=True))
    assert (accepted.fate, accepted.seeds) == (Fate.ACCEPTED, 2)
    assert (flagged.fate, len(flagged.alarms)) == (Fate.FLAGGED, 1)
    assert results(sounds=(accepted,)).exit_status == 0
    assert results(sounds=(accepted, flagged)).exit_status == 1
    assert "differs" in selftest.page(results(sounds=(flagged,)))


def test_summary_counts_what_each_test_lets_through():
    found = results(row(STATED), sounds=(verdict.of_sound(
        is_right.entry, [result("passed")], usual(passes=False)
    ),))  # fmt: skip
    lines = selftest.summary(found).splitlines()
    counts = {line.split("|")[1].strip(): line.split("|")[2:7] for line in lines}
    assert [c.strip() for c in counts["left tail"]] == ["1", "0", "0", "0", "1"]
    assert [c.strip() for c in counts["sound kernels flagged"]] == ["1", "0", "1", "1", "1"]


def test_record_is_the_same_when_it_is_read_again():
    text = results(row(STATED)).model_dump_json()
    assert SelftestResults.model_validate_json(text).model_dump_json() == text


def test_page_of_what_is_caught_is_up_to_date():
    assert publish.CATCHES.read_text(encoding="utf-8") == catches.page(catalogue.defects())


def test_table_of_the_readme_is_that_of_the_committed_run():
    source = publish.ROOT / "reports" / "selftest" / "cpu.json"
    committed = SelftestResults.model_validate_json(source.read_text(encoding="utf-8"))
    text = publish.README.read_text(encoding="utf-8")
    assert publish.with_table(text, selftest.summary(committed)) == text
    assert committed.exit_status == 0
    assert (committed.profile, committed.device) == ("full", "cpu")
