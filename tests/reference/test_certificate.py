"""The certificate of the fast reference: what it says, and that nothing wrong can pass it."""

from __future__ import annotations

import dataclasses
import json
import math
import os
import random
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import numpy as np
import psutil
import pytest
import torch

from gelu_verify.errors import OracleError
from gelu_verify.ledger import Ledger, LedgerRefused
from gelu_verify.reference import certificate, fast
from gelu_verify.reference.certificate import __main__ as command_line
from gelu_verify.reference.certificate import (
    closed_form,
    record,
    run,
    source,
    sweep,
    taylor,
    verify,
    zones,
)
from gelu_verify.reference.certificate.status import PATH, status
from gelu_verify.reference.certificate.zones import FP32, Shard

ROOT = Path(__file__).parents[2]
#: Around the zero of the derivative: models, small blocks and single inputs all occur.
NEAR_ZERO = FP32.encode(float(np.float32(0.7517916)))
AROUND_ZERO = Shard("erf", 1, "nontrivial", "taylor", True, NEAR_ZERO - 20000, NEAR_ZERO + 20000)
AROUND_ONE = Shard("erf", 0, "nontrivial", "taylor", False, FP32.encode(1.0), FP32.encode(1.0) + 40)

#: Twenty-four shards in the left tail.
SMALL_JOB = [
    Shard("erf", 0, "nontrivial", "taylor", True, first, first + (1 << 17))
    for first in range(FP32.encode(8.0), FP32.encode(8.0) + 24 * (1 << 17), 1 << 17)
]


@pytest.fixture(scope="module")
def document() -> dict:
    return json.loads(PATH.read_text(encoding="utf-8"))


def test_committed_certificate_stands_for_the_source() -> None:
    found = certificate.status()
    assert found.certified, found.reason
    assert set(found.max_error_units) == {f"{formula}:{order}" for formula, order in run.FUNCTIONS}


def test_random_blocks_stay_within_the_committed_certificate(document: dict) -> None:
    seed = random.SystemRandom().randrange(2**32)
    print("seed", seed)
    found = verify.verify(document, 300, seed)
    assert found.count > 1_000_000
    assert all(found.worst[name] <= document["functions"][name]["bound"] for name in found.worst)


def test_models_agree_with_direct_arb_at_random_inputs() -> None:
    seed = random.SystemRandom().randrange(2**32)
    print("seed", seed)
    rng = random.Random(seed)
    checked = 0
    for shard in (s for s in verify.sample(rng, 240) if s.method == "taylor"):
        evaluate = sweep.reference(shard.formula, shard.order)
        with taylor.arithmetic():
            modelled = [block for block in sweep.blocks(shard) if block.model is not None]
        block = rng.choice(modelled)
        bits = sweep.patterns(block.first, block.length, shard.negative)
        seen = sweep.errors(bits[None], [block.model], evaluate)[0]
        x, results = sweep.evaluated(bits, evaluate)
        for i in rng.sample(range(block.length), min(block.length, 20)):
            direct = sweep.direct_error(float(x[i]), float(results[i]), shard.formula, shard.order)
            allowed = block.model.error + 1e-9 * max(1.0, direct)
            assert abs(seen[i] - direct) <= allowed, (shard, float(x[i]), seen[i], direct)
            checked += 1
    assert checked > 3000


def test_worst_inputs_of_the_record_are_reproduced_by_direct_arb(document: dict) -> None:
    for formula, order in run.FUNCTIONS:
        entry = document["functions"][f"{formula}:{order}"]
        x = float.fromhex(entry["seen_error_input"]["hex"])
        result = sweep.reference(formula, order)(torch.tensor([x], dtype=torch.float64)).item()
        direct = sweep.direct_error(x, result, formula, order)
        assert direct <= entry["bound"]
        if document["environment"] == run.environment():
            assert direct == pytest.approx(entry["arb_error_units"], abs=1e-9)
            assert direct == pytest.approx(entry["mpmath_error_units"], abs=1e-9)
            assert direct == pytest.approx(
                entry["seen_error_units"], abs=entry["model_error_units"]
            )


@pytest.mark.parametrize(("formula", "order"), run.FUNCTIONS)
def test_zones_cover_every_pattern_once(formula: str, order: int, document: dict) -> None:
    parts = zones.zones(formula, order)
    for negative in (False, True):
        side = [zone for zone in parts if zone.negative is negative]
        assert (side[0].first, side[-1].stop) == (0, 1 << 31)
        assert all(a.stop == b.first for a, b in pairwise(side))
    assert sum(zone.count for zone in parts) == 2**32
    entry = document["functions"][f"{formula}:{order}"]
    assert entry["count"] == sum(row["count"] for row in entry["zones"]) == 2**32
    enumerated = sum(s.stop - s.first for s in zones.shards(formula, order))
    assert entry["count_enumerated"] == enumerated
    assert sum(zone.count for zone in parts if zone.name == "nan") == FP32.nan_count


@pytest.mark.parametrize(("formula", "order"), run.FUNCTIONS)
def test_closed_form_zones_are_what_the_proofs_say(formula: str, order: int) -> None:
    assert sum(closed_form.check(formula, order).values()) > 4 * 4096


def test_result_does_not_depend_on_the_split() -> None:
    whole = sweep.examine(AROUND_ZERO)
    parts = [
        Shard("erf", 1, "nontrivial", "taylor", True, first, min(first + 7001, AROUND_ZERO.stop))
        for first in range(AROUND_ZERO.first, AROUND_ZERO.stop, 7001)
    ]
    merged = sweep.Result()
    for part in reversed(parts):
        merged = sweep.examine(part).merge(merged)
    assert whole.direct > 0
    assert merged.count == whole.count == 40000
    assert merged.seen_bits == whole.seen_bits
    assert merged.seen == pytest.approx(whole.seen, abs=2 * taylor.MAX_SLACK)


def test_equal_peaks_keep_the_smaller_pattern() -> None:
    one = sweep.Result(1, upper=2.0, upper_bits=7, seen=1.0, seen_bits=9)
    two = sweep.Result(1, upper=2.0, upper_bits=5, seen=1.0, seen_bits=11)
    for merged in (one.merge(two), two.merge(one)):
        assert (merged.upper_bits, merged.seen_bits, merged.count) == (5, 9, 2)


@pytest.mark.parametrize("wrong", [1.0 + 1e-13, 1.0 - 1e-13, 2.0, 0.0, -1.0, math.nan, math.inf])
@pytest.mark.parametrize("shard", [AROUND_ONE, AROUND_ZERO])
def test_planted_error_at_one_input_is_found(
    wrong: float, shard: Shard, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = "derivative" if shard.order else "gelu"
    sound = getattr(fast, name)
    target = zones.point(shard.first + 17, shard.negative)
    monkeypatch.setattr(fast, name, _planted(sound, target, wrong))
    found = sweep.examine(shard)
    assert found.seen > fast.RELATIVE_ERROR_BOUND[shard.formula, shard.order]
    assert FP32.decode(found.seen_bits) == target
    if abs(wrong - 1.0) < 1e-12:
        assert found.seen == pytest.approx(1e-13 * 2**53, abs=10)


def test_planted_error_next_to_the_derivatives_zero_is_found(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    sound, target = fast.derivative, zones.point(NEAR_ZERO, True)
    monkeypatch.setattr(fast, "derivative", _planted(sound, target, 1 + 1e-13))
    found = sweep.examine(AROUND_ZERO)
    assert FP32.decode(found.upper_bits) == target


def test_wrong_sign_of_an_underflow_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    shard = Shard("erf", 0, "underflow", "size", True, FP32.encode(64.0), FP32.encode(64.0) + 99)
    assert sweep.examine(shard) == sweep.Result(99)
    sound = fast.gelu
    monkeypatch.setattr(fast, "gelu", lambda x, f: sound(x, f).abs())
    assert sweep.examine(shard).upper == math.inf


def test_wrong_closed_form_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    sound = fast.gelu
    monkeypatch.setattr(fast, "gelu", lambda x, f: torch.where(x == -math.inf, 0.0, sound(x, f)))
    with pytest.raises(OracleError, match="infinite"):
        closed_form.check("erf", 0)


def test_hash_ignores_comments_and_docstrings_only(tmp_path: Path) -> None:
    for name in source.FILES:
        shutil.copy(source.FOLDER / name, tmp_path)
    original = source.source_hash()
    tails = (tmp_path / "tails.py").read_text("utf-8")
    edits = {
        "comment": (tails + "\n# a remark\n", True),
        "docstring": (tails.replace("Left tails in float64", "Tails"), True),
        "constant": (tails.replace("max=0.5", "max=0.25", 1), False),
        "statement": (tails + "\nX = 1\n", False),
    }
    for what, (text, same) in edits.items():
        assert text != tails, what
        (tmp_path / "tails.py").write_text(text, "utf-8")
        source.source_hash.cache_clear()
        assert (source.source_hash(tmp_path) == original) is same, what


def test_changed_source_is_reported_uncertified(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(source, "source_hash", lambda: "0" * 64)
    found = certificate.status()
    assert not found.certified
    assert "hash 000000000000" in found.reason
    assert command_line.main(["check"]) == 1
    (line,) = capsys.readouterr().out.splitlines()
    assert line.startswith("uncertified: ")
    assert line.endswith("Run python -m gelu_verify.reference.certificate make.")


def test_changed_coefficients_are_reported_uncertified(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(run, "table_hash", lambda: "0" * 64)
    assert command_line.main(["check"]) == 1
    (line,) = capsys.readouterr().out.splitlines()
    assert line.startswith("uncertified: the coefficients differ")
    assert line.endswith("certificate make.")


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [("max=0.5", "max=0.5", 0), ("Left tails", "Tails", 0), ("max=0.5", "max=0.25", 1)],
)
def test_release_check_fails_when_the_source_changed_without_a_certificate(
    tmp_path: Path, old: str, new: str, expected: int
) -> None:
    package = tmp_path / "gelu_verify"
    shutil.copytree(source.FOLDER.parent, package, ignore=shutil.ignore_patterns("__pycache__"))
    tails = package / "reference" / "tails.py"
    text = tails.read_text("utf-8")
    assert old in text
    tails.write_text(text.replace(old, new, 1), "utf-8")
    making = ["make", "-n", "release-check", "BIN=."]
    made = subprocess.run(making, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    words = next(line for line in made.splitlines() if "certificate check" in line).split()
    done = subprocess.run(
        [sys.executable, *words[1:]], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == expected, done.stderr
    if expected:
        assert len(done.stdout.splitlines()) == 1
        assert "certificate make" in done.stdout


def test_ci_runs_the_release_check() -> None:
    assert "make release-check || status=1" in (ROOT / ".ci/run").read_text("utf-8").splitlines()


@pytest.mark.parametrize(
    ("damage", "reason"),
    [
        (lambda d: d["functions"]["tanh:1"]["zones"][3].update(certified=False), "not certified"),
        (lambda d: d["functions"]["tanh:1"]["zones"][3].update(count=5), "add up"),
        (lambda d: d["functions"]["erf:0"].update(holds=False), "above its bound"),
        (lambda d: d["functions"]["erf:0"].update(max_error_units=99.0), "above its bound"),
        (lambda d: d["functions"].pop("sigmoid:1"), "sigmoid:1"),
        (lambda d: d.update(schema_version=0), "schema 0"),
        (lambda d: d.pop("source_hash"), "source_hash"),
    ],
)
def test_incomplete_certificate_is_reported(
    damage: object, reason: str, document: dict, tmp_path: Path
) -> None:
    changed = json.loads(json.dumps(document))
    damage(changed)
    path = tmp_path / "certificate.json"
    path.write_text(json.dumps(changed), "utf-8")
    found = status(path)
    assert not found.certified
    assert reason in found.reason
    assert "\n" not in found.reason


def test_missing_or_broken_certificate_is_reported(tmp_path: Path) -> None:
    path = tmp_path / "certificate.json"
    assert "there is no certificate" in status(path).reason
    path.write_text("{", "utf-8")
    assert "cannot be read" in status(path).reason
    path.write_text("[]", "utf-8")
    assert "cannot be read" in status(path).reason


def test_status_is_cheap_and_needs_no_torch() -> None:
    code = (
        "import sys, time; from gelu_verify.reference import certificate; t = time.perf_counter();"
        "certificate.status(); print(time.perf_counter() - t, 'torch' in sys.modules)"
    )
    seconds, torch_loaded = _python(code).split()
    assert torch_loaded == "False"
    assert float(seconds) < 0.25  # 0.02 on an idle machine


def test_killed_run_resumes_to_the_same_record(tmp_path: Path) -> None:
    straight, killed, key = tmp_path / "straight", tmp_path / "killed", run.run_key()
    process = subprocess.Popen([sys.executable, "-c", _JOB, str(killed)])
    deadline = time.monotonic() + 60
    while _rows(killed) < 2 and time.monotonic() < deadline:
        time.sleep(0.01)
    workers = psutil.Process(process.pid).children(recursive=True)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    assert 0 < _rows(killed) < len(SMALL_JOB)
    assert psutil.wait_procs(workers, timeout=10)[1] == []
    with Ledger(straight, key) as ledger:
        run.work(SMALL_JOB, ledger)
        expected = run.finished(ledger)
    with Ledger(killed, key) as ledger:
        run.work(SMALL_JOB, ledger)
        assert run.finished(ledger) == expected
    assert len(expected) == len(SMALL_JOB)
    assert sum(result.count for result in expected.values()) == len(SMALL_JOB) << 17


def test_damaged_ledger_is_refused_with_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "ledger.sqlite"
    with Ledger(path, run.run_key()) as ledger:
        run.work([AROUND_ONE], ledger)
    with sqlite3.connect(path) as database:
        database.execute("UPDATE shard SET content = '{}'")
    assert command_line.main(["make", "--ledger", str(path)]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert "an altered shard" in line
    path.write_bytes(b"not a database, but long enough to have the header of one" * 9)
    assert command_line.main(["make", "--ledger", str(path)]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert "a file that SQLite cannot use" in line


def test_results_are_those_that_were_kept_when_a_ledger_is_opened_again(tmp_path: Path) -> None:
    path = tmp_path / "ledger.sqlite"
    shards = [AROUND_ONE, dataclasses.replace(AROUND_ONE, negative=True), AROUND_ZERO]
    with Ledger(path, run.run_key()) as ledger:
        run.work(shards, ledger)
        kept = run.finished(ledger)
    with Ledger(path, run.run_key()) as ledger:
        assert run.finished(ledger) == kept
    assert list(kept) == shards


def test_results_of_another_run_are_not_mixed_in(tmp_path: Path) -> None:
    path = tmp_path / "ledger.sqlite"
    other = run.run_key() | {"method": "another"}
    with Ledger(path, other) as ledger:
        run.work([AROUND_ONE], ledger)
    with pytest.raises(LedgerRefused, match="got method = 'another'"):
        Ledger(path, run.run_key())


def test_unfinished_zones_are_recorded_as_uncertified() -> None:
    shards = [s for s in zones.shards("sigmoid", 0) if s.zone == "left_tail"]
    results = {s: sweep.Result(s.stop - s.first, 1, 0, 2.0, s.first, math.inf) for s in shards}
    entry = record.certificate(results, "")["functions"]["sigmoid:0"]
    rows = {(row["zone"], row["side"]): row["certified"] for row in entry["zones"]}
    assert rows["left_tail", "negative"] is True
    assert rows["nontrivial", "negative"] is False
    assert entry["complete"] is entry["holds"] is False


def test_wrong_usage_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert command_line.main(["make", "--function", "erf:2"]) == 2
    assert command_line.main(["make", "--zone", "nontrival"]) == 2
    assert command_line.main(["verify", "--slice", "0"]) == 2
    assert command_line.main(["verify", "--certificate", "/nonexistent.json"]) == 2
    errors = capsys.readouterr().err.splitlines()
    assert len(errors) == 4
    assert "nontrivial" in errors[1]


#: The small job on two processes, written slowly, so that the kill comes in the middle.
_JOB = """
import sys, time
from pathlib import Path
from gelu_verify.ledger import Ledger
from gelu_verify.reference.certificate import run
from gelu_verify.reference.certificate.zones import Shard, FP32

start = FP32.encode(8.0)
shards = [
    Shard("erf", 0, "nontrivial", "taylor", True, first, first + (1 << 17))
    for first in range(start, start + 24 * (1 << 17), 1 << 17)
]
if __name__ == "__main__":
    with Ledger(Path(sys.argv[1]), run.run_key()) as ledger:
        run.work(shards, ledger, 2, progress=lambda *_: time.sleep(0.2))
"""


def _planted(sound: Callable, target: float, factor: float) -> Callable:
    """Return ``sound`` with its result at one input multiplied by a factor."""

    def replaced(x: torch.Tensor, formula: str) -> torch.Tensor:
        result = sound(x, formula)
        result[x == target] *= factor
        return result

    return replaced


def _python(code: str, *arguments: str) -> str:
    command = [sys.executable, "-c", code, *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def _rows(path: Path) -> int:
    if not path.exists():
        return 0
    database = sqlite3.connect(path, timeout=30)
    try:
        return database.execute("SELECT count(*) FROM shard").fetchone()[0]
    except sqlite3.OperationalError:
        return 0
    finally:
        database.close()
