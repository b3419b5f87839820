"""The file of hard cases, and the sweeps that replay it."""

import json
import multiprocessing
from pathlib import Path

import pytest
import torch

from gelu_verify import formats
from gelu_verify.errors import UsageError
from gelu_verify.formats import tensors
from gelu_verify.hunt import hard_cases
from gelu_verify.hunt.hard_cases import HardCase
from gelu_verify.inputs import hard_cases as replayed
from gelu_verify.inputs import sweep

CASE = {
    "operator": "gelu",
    "formula": "erf",
    "format": "fp64",
    "bits": ["0xC022000000000001"],
    "inputs": ["-9.000000000000002"],
    "exact": "-1.0157728715385373e-18",
    "kernel": "torch-erf",
    "device": "cpu",
    "got": "-0.0",
    "error_ulp": 5.27e15,
    "date": "2026-01-01T00:00:00+00:00",
    "versions": {"torch": "2.11"},
}


def _case(**fields):
    return HardCase.model_validate_json(json.dumps(CASE | fields))


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(replayed, "PACKAGED", tmp_path / "none.jsonl")
    return tmp_path


def test_cases_are_read_back_when_they_were_appended(folder):
    path = folder / "reports" / "h.jsonl"
    cases = [_case(), _case(kernel="other"), _case(error_ulp="NaN", bits=["0x0000000000000001"])]
    assert hard_cases.append(path, cases) == 3
    read = hard_cases.read(path)
    assert [case.key for case in read] == [case.key for case in cases]
    assert read[0] == cases[0]


def test_nothing_is_written_twice_when_a_case_is_known(folder):
    path = folder / "h.jsonl"
    assert hard_cases.append(path, [_case(), _case(date="later")]) == 1
    before = path.read_bytes()
    assert hard_cases.append(path, [_case(error_ulp=1.0)]) == 0
    assert path.read_bytes() == before


def test_a_line_of_its_own_is_begun_when_the_last_one_has_no_end(folder):
    path = folder / "h.jsonl"
    path.write_text(_case().model_dump_json())
    hard_cases.append(path, [_case(kernel="b")])
    assert len(hard_cases.read(path)) == 2


def _append(path, kernel):
    hard_cases.append(path, [_case(kernel=f"{kernel}-{i}") for i in range(20)])


def test_no_case_is_lost_when_two_processes_append(folder):
    path = folder / "h.jsonl"
    context = multiprocessing.get_context("fork")
    workers = [context.Process(target=_append, args=(path, name)) for name in "ab"]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(30)
    assert len(hard_cases.read(path)) == 40


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("{", ("line 2", "expected one JSON object")),
        (json.dumps(CASE | {"bits": ["0x1", "0x2"]}), ("line 2", "got 2, expected 1")),
        (json.dumps(CASE | {"bits": ["0x" + "1" * 17]}), ("line 2", "64 bits")),
        (json.dumps(CASE | {"bits": ["-9"]}), ("line 2", "hexadecimal")),
        (json.dumps(CASE | {"format": "fp65"}), ("line 2", "fp65")),
        (json.dumps(CASE | {"operator": "gelou"}), ("line 2", "gelou")),
        (json.dumps({}), ("line 2", "Field required")),
    ],
)
def test_one_line_names_the_place_when_a_file_cannot_be_read(folder, line, words):
    path = folder / "h.jsonl"
    path.write_text(_case().model_dump_json() + "\n" + line + "\n")
    for action in (lambda: hard_cases.read(path), lambda: hard_cases.append(path, [])):
        with pytest.raises(UsageError) as caught:
            action()
        assert "\n" not in str(caught.value)
        assert all(word in str(caught.value) for word in words), str(caught.value)


def test_patterns_are_those_of_operator_and_format_when_replayed(folder):
    pair = {"operator": "gelu_backward", "bits": ["0x3FF0000000000000", "0xC022000000000001"]}
    hard_cases.append(
        hard_cases.DEFAULT_PATH,
        [_case(), _case(kernel="b"), _case(formula="tanh", bits=["0x3"]), _case(**pair),
         _case(format="fp32", bits=["0xC1100001"])],
    )  # fmt: skip
    fp64 = formats.get("fp64")
    assert replayed.patterns("gelu", fp64) == ((3,), (0xC022000000000001,))
    assert replayed.patterns("gelu_backward", fp64) == ((0x3FF0 << 48, 0xC022000000000001),)
    assert replayed.patterns("gelu", formats.get("bf16")) == ()


@pytest.mark.parametrize("name", ["fp64", "fp32", "bf16"])
@pytest.mark.parametrize("arguments", [("x",), ("dy", "x")])
def test_sweep_holds_the_hard_cases_in_order_when_it_is_built(name, arguments):
    fmt = formats.get(name)
    rows = [(fmt.encode(dy), fmt.encode(x)) for dy in (3.0, -0.5) for x in (-9.25, 0.0, 7.0)]
    hard = tuple(sorted({row[-len(arguments) :] for row in rows}))
    plain = sweep.build(fmt, arguments, sweep.Depth.QUICK)
    merged = sweep.build(fmt, arguments, sweep.Depth.QUICK, hard=hard)
    patterns = torch.stack([tensors.to_bits(part, fmt) for part in merged.inputs], dim=1)
    signed = [tuple(tensors.signed(p, fmt) for p in row) for row in hard]
    have = set(map(tuple, patterns.tolist()))
    assert set(signed) <= have
    x = merged.x.double()
    x = x[~torch.isnan(x)]
    assert bool((x[1:] >= x[:-1]).all())
    added = len(merged.x) - len(plain.x)
    assert 0 <= added <= len(hard)
    assert (merged.digest != plain.digest) == (added > 0)
    again = sweep.build(fmt, arguments, sweep.Depth.QUICK, hard=hard)
    assert again.digest == merged.digest


def test_packaged_cases_are_readable_and_in_the_reports_when_in_a_checkout():
    packaged = {case.key for case in hard_cases.read(replayed.PACKAGED)}
    assert packaged
    reports = Path(__file__).parents[2] / hard_cases.DEFAULT_PATH
    assert packaged <= {case.key for case in hard_cases.read(reports)}
