"""The measurement of the gate itself, from a kernel to its report."""

import json
from functools import partial
from pathlib import Path

import pytest
import torch

from gelu_verify.errors import UsageError
from gelu_verify.job import Job, plan
from gelu_verify.report import alarms
from gelu_verify.statistics import run
from gelu_verify.statistics.power import Fault
from gelu_verify.statistics.run import GateAlarms, gate_alarms
from tests.cli.command import here


def job(fmt: str, operator: str = "gelu") -> Job:
    jobs = plan("torch-erf", operator=operator, format_names=(fmt,), seed=3)
    return next(job for job in jobs if job.operator == operator)


def test_a_kernel_that_does_not_change_raises_no_alarm() -> None:
    found = gate_alarms(job("fp16"), 4, with_power=False)
    assert (found.alarms.decisions, found.alarms.alarms, found.alarms.first_seed) == (4, 0, 3)
    assert found.alarms.comparisons == 4 * 3 * 8
    assert found.power is None
    assert found.alarms_from == "inputs drawn afresh"


def test_a_kernel_that_changes_from_call_to_call_alarms() -> None:
    calls = 0

    def restless(x: torch.Tensor) -> torch.Tensor:
        nonlocal calls
        calls += 1
        y = torch.nn.functional.gelu(x.double())
        later = calls % 2 == 0  # of the two samples of a decision
        return (y * (1.0 + 2.0**-22 * later)).to(x.dtype)

    found = gate_alarms(job("fp32"), 2, with_power=False, function=restless)
    assert found.alarms.alarms == 2


def test_a_report_has_the_figures_of_its_record(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run, "_POOL_FP64", 100)
    monkeypatch.setattr(run, "power", partial(run.power, trials=3))
    found = gate_alarms(job("fp64"), 2)
    assert found.alarms_from == "drawn from the pool"
    assert GateAlarms.model_validate_json(found.model_dump_json()) == found
    text = alarms.document(found)
    assert "**0 false alarms in 2 decisions: 0.000% (95% interval 0.000% to 84.189%).**" in text
    assert found.power is not None
    rows = [line for line in text.splitlines() if line.startswith("| ")][2:]
    assert [row.split(" | ")[0] for row in rows] == [
        f"| {r.region}" for r in found.power.regions if r.fault is Fault.SHIFT
    ]


def test_a_fused_operator_has_no_independent_results() -> None:
    jobs = plan("torch-linear-gelu", format_names=("fp32",))
    with pytest.raises(UsageError, match="expected an elementwise operator"):
        gate_alarms(jobs[0], 1)


def test_the_command_writes_its_report(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "alarms.json"
    words = ("torch-erf", "--format", "fp16", "--seeds", "1", "--no-power", "--json", file)
    done = here(capsys, monkeypatch, "gate-alarms", *words)
    assert done.status == 0, done.err
    assert "0 false alarms in 1 decisions" in done.out
    assert json.loads(file.read_text())["alarms"]["decisions"] == 1
