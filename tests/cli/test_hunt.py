"""``gelu-verify hunt``."""

import json
import re
from pathlib import Path

import pytest

from gelu_verify.hunt import hard_cases, isolated
from gelu_verify.hunt.records import HuntRequest, HuntStatus
from gelu_verify.inputs.problems import stored
from gelu_verify.job import plan
from gelu_verify.kernels.listener import Limits
from tests.cli.command import here

HOSTILE = str(Path(__file__).parents[1] / "kernels" / "hostile_kernels.py")


@pytest.fixture
def hunt(capsys, monkeypatch, tmp_path):
    def run(*words):
        return here(capsys, monkeypatch, "hunt", *words)

    return run


def test_worst_inputs_are_shown_and_saved_when_torch_is_hunted(hunt, tmp_path):
    saved, result = tmp_path / "h.jsonl", tmp_path / "r.json"
    done = hunt("torch-erf", "--seconds", "1", "--save", saved, "--json", result)
    assert done.status == 0
    line = r"largest error found: [89]\.\d\de\+15 ULP \(100 % of the exact value\) at x = -"
    assert re.search(line, done.out)
    assert "maximum" not in done.out
    found = json.loads(result.read_text())["hunt"]["found"]
    assert found[0]["relative_error"] == 1.0
    cases = hard_cases.read(saved)
    assert cases[0].bits == tuple(found[0]["point"]["bits"].values())
    assert cases[0].versions["torch"]
    assert all(abs(case.error_ulp) > 0.5 for case in cases)


def test_what_was_found_is_kept_when_the_kernel_dies_on_the_way(hunt, tmp_path):
    result = tmp_path / "r.json"
    done = hunt("tests.hunt.kernels:dies_later", "--format", "fp32", "--seconds", "5",
                "--json", result)  # fmt: skip
    record = json.loads(result.read_text())["hunt"]
    assert (done.status, record["status"]) == (1, "crashed")
    assert "SIGSEGV" in record["message"]


def test_hunt_is_timed_out_when_the_kernel_hangs(hunt):
    done = hunt("tests.hunt.kernels:hangs", "--seconds", "1", "--timeout", "1.5")
    assert done.status == 1
    assert "TIMED OUT" in done.out


def test_hunt_of_cases_is_timed_out_when_a_gradient_does_not_come():
    name = "tests.hunt.kernels:linear_gelu_sleeps_in_its_backward"
    (job,) = plan(name, operator="linear_gelu", format_names=("fp32",))
    request = HuntRequest(job=job, cases=True, seconds=60.0)
    report = isolated.run(request, Limits(seconds=1.5), lambda _: None)
    assert report.hunt.status is HuntStatus.TIMED_OUT
    assert report.hunt.message == "no answer within 1.5 s. Raise --timeout if it may"


def test_hunt_is_ended_when_the_kernel_fills_its_process():
    (job,) = plan(f"{HOSTILE}:hoards", format_names=("bf16",))[:1]
    request = HuntRequest(job=job, seconds=60.0)
    report = isolated.run(request, Limits(memory=3 << 29), lambda _: None)
    assert report.hunt.status is HuntStatus.CRASHED
    assert report.hunt.message.startswith("memory: the kernel's process grew to 1.")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("torch-erff",), "Did you mean torch-erf?"),
        (("torch-erf", "--format", "fp65"), "format"),
        (("torch-erf", "--format", "fp32,bf16"), "format"),
        (("torch.ops.aten.gelu_backward", "--backward"), "--backward"),
        (("nowhere.py:f",), "nowhere.py"),
    ],
)
def test_usage_error_is_one_line_when_an_option_is_wrong(hunt, words, message):
    done = hunt(*words)
    assert done.status == 2
    assert message in done.err
    assert done.err.count("\n") == 1


def test_worst_cases_are_shown_and_saved_when_a_fused_operator_is_hunted(hunt, tmp_path):
    saved, result = tmp_path / "c.jsonl", tmp_path / "r.json"
    name = "tests.hunt.kernels:linear_gelu_adds_a_constant"
    words = (name, "--operator", "linear_gelu", "--seconds", "1")
    done = hunt(*words, "--save", saved, "--json", result)
    assert done.status == 0
    assert re.search(r"result: \S+ of the bound, \S+ elements beyond it: case m=", done.out)
    assert f"gelu-verify check {name} --operator linear_gelu" in done.out
    record = json.loads(result.read_text())["hunt"]
    assert record["format"] == "fp32"
    cases = stored.read(saved)
    broken = [found for found in record["cases"] if found["broken"]]
    assert [case.case for case in cases] == [found["case"] for found in broken]
    assert cases[0].versions["torch"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("torch-erf", "--cases"), "--cases"),
        (("torch-linear-gelu", "--backward"), "--backward"),
    ],
)
def test_usage_error_when_cases_are_hunted_of_what_has_none(hunt, words, message):
    done = hunt(*words)
    assert done.status == 2
    assert message in done.err
    assert done.err.count("\n") == 1


def test_what_was_found_is_kept_when_a_hunt_is_interrupted():
    def stop(_):
        raise KeyboardInterrupt

    (job,) = plan("torch-linear-gelu", format_names=("bf16",))
    request = HuntRequest(job=job, cases=True, seconds=60.0)
    report = isolated.run(request, Limits(), stop)
    assert report.hunt.status is HuntStatus.INTERRUPTED
    assert report.hunt.exit_status == 130
    assert "Ctrl-C" in report.hunt.message
