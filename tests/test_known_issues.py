"""Known issues: declared faults are excused; gone ones, and everything else, are not."""

from importlib import metadata

import pytest
import torch
from pydantic import ValidationError

from gelu_verify.kernels.registry import registered
from gelu_verify.kernels.spec import KernelSpec, KnownIssue
from gelu_verify.known_issues import apply_known_issues
from gelu_verify.records import Finding, FindingStatus
from tests.cases import job

LINK = "https://example.org/issues/1"
FAILED, PASSED, KNOWN = FindingStatus.FAILED, FindingStatus.PASSED, FindingStatus.KNOWN_ISSUE
SETS = {"AVX2", "AVX512", "DEFAULT"} - {torch.backends.cpu.get_cpu_capability()}


def _apply(finding, job_options=None, **issue):
    fields = {"check": "accuracy", "formats": ("bf16",), "link": LINK, "summary": "erf", **issue}
    spec = KernelSpec(name="k", target="m:k", known_issues=(KnownIssue(**fields),))
    task = job(spec=spec, **{"depth": "standard", **(job_options or {})})
    return apply_known_issues((finding,), task)


def _finding(status, check="accuracy", shown="x = inf (0x7F80)"):
    return Finding(check=check, status=status, message="m", input=shown)


def test_failure_is_excused_when_it_is_declared():
    (found,) = _apply(_finding(FAILED))
    assert (found.status, found.link) == (KNOWN, LINK)


def test_run_fails_when_a_declared_fault_no_longer_shows():
    kept, added = _apply(_finding(PASSED))
    assert kept.status is PASSED
    assert added.status is FAILED
    assert added.message == (
        f"known issue {LINK} (erf) no longer shows. Remove its declaration."
    )  # fmt: skip


@pytest.mark.parametrize(
    "issue",
    [
        {"versions": "<1.0"},
        {"instruction_sets": tuple(SETS)},
        {"formats": ("fp32",)},
        {"devices": ("cuda",)},
        {"operator": "gelu_backward"},
        {"package": "no-such-package-xyz"},
        {"sweeps": ("exhaustive",)},
    ],
)
@pytest.mark.parametrize("status", [FAILED, PASSED])
def test_nothing_changes_when_the_declaration_is_for_elsewhere(issue, status):
    finding = _finding(status)
    assert _apply(finding, **issue) == (finding,)


def test_other_checks_are_not_excused_when_one_is_declared():
    kept, added = _apply(_finding(FAILED, check="routes"))
    assert (kept.status, added.status) == (FAILED, FAILED)


def test_other_inputs_are_not_excused_when_one_is_declared():
    (found,) = _apply(_finding(FAILED), inputs=("inf",))
    assert found.status is KNOWN
    kept, added = _apply(_finding(FAILED, shown="x = nan (0x7FC0)"), inputs=("inf",))
    assert (kept.status, added.status) == (FAILED, FAILED)


def test_fault_that_only_an_exhaustive_sweep_sees_is_excused_and_missed_there_alone():
    declared = {"sweeps": ("exhaustive",)}
    every = {"depth": "exhaustive"}
    assert _apply(_finding(FAILED), every, **declared)[0].status is KNOWN
    kept, added = _apply(_finding(PASSED), every, **declared)
    assert (kept.status, added.status) == (PASSED, FAILED)
    assert "no longer shows" in added.message
    # The command that shows it again runs its input alone: there is nothing to be missed.
    replayed = every | {"replay": ((0x3F80,),)}
    assert _apply(_finding(FAILED), replayed, **declared)[0].status is KNOWN
    assert _apply(_finding(PASSED), replayed, **declared) == (_finding(PASSED),)


def test_sweep_is_refused_when_there_is_none_of_that_name():
    with pytest.raises(ValidationError, match="sweeps"):
        _apply(_finding(FAILED), sweeps=("exhausting",))


@pytest.mark.parametrize(
    ("name", "check", "shown", "device", "torch_version", "capability"),
    [
        ("torch-erf", "invariants", "x = -0.3387873 (0xBEAD7587)", "cpu", "2.13.0+cpu", "AVX2"),
        ("torch-tanh", "accuracy", "x = -1.1881007 (0xBF9813AF)", "cuda", "2.11.0", "AVX512"),
    ],
)
def test_what_the_committed_exhaustive_records_show_is_declared_for_where_it_was_seen(
    name, check, shown, device, torch_version, capability, monkeypatch
):
    monkeypatch.setattr(metadata, "version", lambda _: torch_version)
    monkeypatch.setattr(torch.backends.cpu, "get_cpu_capability", lambda: capability)

    def status(depth="exhaustive", on=device, fmt="fp32"):
        task = job(fmt, spec=registered()[name], formula=registered()[name].formula,
                   depth=depth, device=on, replay=((0xBF800000,),))  # fmt: skip
        (found,) = apply_known_issues((_finding(FAILED, check, shown),), task)
        return found.status

    assert status() is KNOWN
    assert status(depth="standard") is FAILED
    assert status(fmt="fp64") is FAILED
    assert status(on="cuda" if device == "cpu" else "cpu") is FAILED
    monkeypatch.setattr(metadata, "version", lambda _: "2.12.0")
    assert status() is FAILED


@pytest.mark.parametrize("options", [{"contract": "faithful"}, {"formula": "tanh"}])
def test_nothing_is_excused_when_more_is_asked_than_declared(options):
    finding = _finding(FAILED)
    assert _apply(finding, options) == (finding,)


@pytest.mark.parametrize("options", [{"replay": ((0x3F80,),)}, {"depth": "quick"}])
def test_absence_proves_nothing_when_only_some_inputs_ran(options):
    finding = _finding(PASSED)
    assert _apply(finding, options) == (finding,)
    assert _apply(_finding(FAILED), options)[0].status is KNOWN
