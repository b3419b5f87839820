"""The ratchet, and what a gate makes of it."""

import math

import pytest

from gelu_verify.baseline import Folder, Key, acceptance
from gelu_verify.gate import decide
from gelu_verify.gate.record import Against, GateResults
from gelu_verify.kernels.spec import KernelSpec
from gelu_verify.records import Status
from tests.builders import environment, finding, measured, result, results
from tests.cases import job

JOB = job(spec=KernelSpec(name="k.py:f", target="k.py:f"))
KEY = Key.of(JOB)
HELD = measured()


@pytest.fixture
def against(tmp_path):
    """Compare a result with the baseline that another one became."""

    def compare(now, before=HELD, env=None, before_env=None):
        folder = Folder.read(tmp_path)
        if before is not None:
            acceptance.accept(results(before).model_copy(
                update={"environment": before_env or environment()}), folder)  # fmt: skip
        folder = Folder.read(tmp_path)
        (found,) = decide.compare([JOB], (now,), env or environment(), folder, {KEY}, str)
        return found

    return compare


def test_same_figures_hold(against):
    found = against(HELD)
    assert (found.verdict, found.facts, found.warnings) == (Against.HELD, (), ())
    assert not found.verdict.fails


@pytest.mark.parametrize(
    ("now", "fact"),
    [
        (measured({"tail": 2.5, "centre": 0.5}), "tail: largest error 2.5 ULP, was 2 ULP"),
        (measured({"tail": 2.0, "centre": 0.52}), "centre: largest error 0.52 ULP, was 0.5 ULP"),
        (measured({"tail": math.nan, "centre": 0.5}), "tail: largest error - ULP, was 2 ULP"),
        (measured({"centre": 0.5}), "tail: no finite result any more"),
        (measured(classes={"collapse": 3}), "collapse: 3 inputs, was 0"),
        (measured(tightest="cancelling"), "holds: cancelling, was tail_accurate"),
        (measured(tightest=None), "holds: none, was tail_accurate"),
    ],
)
def test_worse_figures_are_a_regression(against, now, fact):
    found = against(now)
    assert found.verdict is Against.REGRESSED
    assert fact in found.facts[0]
    assert found.verdict.fails
    assert found.baseline.endswith(".json")
    assert found.reproduce == str(KEY)


def test_one_better_figure_does_not_hide_a_worse_one(against):
    found = against(measured({"tail": 1.0, "centre": 0.6}))
    assert found.verdict is Against.REGRESSED
    assert found.facts[0].startswith("centre")


def test_better_figures_ask_for_a_tighter_baseline(against):
    found = against(measured({"tail": 1.0, "centre": 0.5}, tightest="faithful"))
    assert found.verdict is Against.IMPROVED
    assert "Tighten the baseline: gelu-verify baseline accept" in found.message
    assert not found.verdict.fails


def test_less_than_a_hundredth_is_a_change_and_no_regression(against):
    found = against(measured({"tail": 2.015, "centre": 0.5}))
    assert found.verdict is Against.CHANGED
    assert "less than 0.02 counts" in found.message


def test_no_baseline_is_a_failure(against):
    found = against(HELD, before=None)
    assert found.verdict is Against.MISSING
    assert found.verdict.fails


def test_other_device_or_library_warns_and_does_not_fail(against):
    worse = measured({"tail": 3.0, "centre": 0.5})
    found = against(worse, env=environment(instruction_set="AVX512"))
    assert found.verdict is Against.ELSEWHERE
    assert found.warnings == ("the baseline is of cpu-avx2, this is cpu-avx512",)
    found = against(worse, env=environment(libraries={"torch": "2.12"}))
    assert found.verdict is Against.ELSEWHERE
    assert found.warnings == ("the baseline is of torch 2.11, this is 2.12",)
    assert not found.verdict.fails


def test_other_inputs_compare_contracts_alone(against):
    found = against(measured({"tail": 3.0, "centre": 0.5}, digest="other"))
    assert found.verdict is Against.HELD
    assert "inputs are not the baseline's" in found.warnings[0]
    found = against(measured(digest="other", tightest="cancelling"))
    assert found.verdict is Against.REGRESSED


def test_crash_is_not_compared(against):
    crashed = result("crashed", finding("start-up", "failed", "died"), name="k.py:f", special=False)
    assert against(crashed).verdict is Against.NOT_COMPARED


def test_kernel_that_is_no_longer_configured_is_reported(tmp_path):
    folder = Folder.read(tmp_path)
    acceptance.accept(results(HELD, measured(name="old")), folder)
    held, gone = decide.compare([JOB], (HELD,), environment(), folder, {KEY}, str)
    assert held.verdict is Against.HELD
    assert (gone.verdict, gone.key.kernel) == (Against.DISAPPEARED, "old")
    assert "baseline accept --prune" in gone.message


def gate(kernels, compared=(), replayed=()):
    return GateResults(
        environment=environment(), kernels=kernels, compared=compared, replayed=replayed,
        profile="ci", seed=0, seconds=1.0,
    )  # fmt: skip


def test_exit_status_is_1_whoever_says_no(against):
    bad = result("failed", finding("accuracy", "failed", "m"))
    unavailable = result("unavailable", special=False)
    assert gate((HELD,), (against(HELD),)).exit_status == 0
    assert gate((bad,)).exit_status == 1
    assert gate((HELD,), replayed=(bad,)).exit_status == 1
    assert gate((HELD,), (against(measured({"tail": 9.0})),)).exit_status == 1
    assert gate((HELD, unavailable)).exit_status == 0
    assert gate((unavailable,)).exit_status == 3
    assert gate(()).exit_status == 3


def test_contract_is_a_ceiling_that_a_baseline_cannot_bless(against, tmp_path):
    """As bad as the baseline is still broken: the verdicts are apart."""
    before = measured(tightest=None)  # it held a declared exception then
    now = before.model_copy(
        update={"status": Status.FAILED, "findings": (finding("accuracy", "failed", "m"),)}
    )
    compared = against(now, before=before)
    assert compared.verdict is Against.HELD
    assert gate((now,), (compared,)).exit_status == 1
    assert acceptance.accept(results(now), Folder.read(tmp_path)).exit_status == 1
