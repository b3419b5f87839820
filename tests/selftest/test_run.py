"""A run of the catalogue: through child processes, to a record and an exit status."""

import json

from gelu_verify import checks
from gelu_verify.checks import fused as checks_fused
from gelu_verify.records import Fate
from gelu_verify.selftest import catalogue, run
from tests.cli.command import here

DEFECT, SOUND, HARMFUL = "nan-becomes-the-clamp-bound", "one-rounding", "aborts-on-a-scalar"


def test_defects_are_killed_and_sound_kernels_accepted_when_they_are_run():
    entries = catalogue.chosen([DEFECT, SOUND, HARMFUL])
    told = []
    results = run.run(entries, run.QUICK, "cpu", lambda done, of: told.append((done, of)), 2)
    assert told[-1] == (3, 3)
    assert results.exit_status == 0
    fates = {(row.name, row.format): row.fate for row in results.defects}
    assert fates == {
        (DEFECT, "fp32"): Fate.KILLED,
        (HARMFUL, "fp32"): Fate.KILLED,
    }
    assert {row.format: row.seeds for row in results.sounds} == {"fp32": 1}
    assert all(len(row.usual) == 7 and row.usual[0].passes for row in results.defects)
    assert results.environment.instruction_set


def test_seeds_are_run_where_a_sweep_is_drawn():
    (entry,) = catalogue.chosen([SOUND])
    drawn = {job.format: run._is_drawn(job) for job in entry.jobs("cpu")}
    assert drawn == {"fp32": True, "bf16": False, "fp16": False}  # all inputs of 16 bits are run


def test_harmful_kernels_share_a_batch_of_their_own():
    entries = catalogue.chosen([])
    harmful, *rest = run._batches(entries, [], 2)
    assert {entry.name for entry in harmful.entries} == {e.name for e in entries if e.harmful}
    sizes = [len(batch.entries) for batch in rest]
    assert sum(sizes) + len(harmful.entries) == len(entries)
    assert abs(sizes[0] - sizes[1]) <= 1


def test_other_seeds_are_shared_out_and_leave_out_what_they_do_not_change():
    entries = catalogue.chosen(["online-softmax"])
    again = run._again(entries, run.FULL, "cpu")
    assert [job.seed for job in again] == list(range(1, 20))
    batches = run._batches(entries, again, 2)
    assert [len(batch.entries) for batch in batches] == [1, 0]
    assert [job.seed for batch in batches for job in batch.again] == [
        *range(1, 20, 2),
        *range(2, 20, 2),
    ]
    (first,) = run.FULL.jobs(entries[0], "cpu")
    assert set(checks_fused.of(first)) - set(checks_fused.of(again[0])) == {"large"}
    (with_numbers, *_) = run._again(catalogue.chosen(["bias-rounded-first"]), run.FULL, "cpu")
    assert checks.of(with_numbers) == checks.CHECKS


def test_record_and_page_are_written_when_the_command_is_run(capsys, monkeypatch, tmp_path):
    page = tmp_path / "matrix.md"
    words = ("selftest", DEFECT, "--quick", "--json", "-", "--markdown", page)
    done = here(capsys, monkeypatch, *words)
    assert done.status == 0, done.err
    record = json.loads(done.out)
    assert record["schema_version"] == 1
    assert [row["fate"] for row in record["defects"]] == ["killed"]
    assert "1 defects, 0 sound kernels: 0 survive" in page.read_text()


def test_usage_error_is_one_line_when_a_name_is_unknown(capsys, monkeypatch):
    done = here(capsys, monkeypatch, "selftest", "nan-becomes-the-clamp-bond")
    assert done.status == 2
    assert "Did you mean nan-becomes-the-clamp-bound?" in done.err
