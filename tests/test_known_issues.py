"""Known issues: declared faults are excused; gone ones, and everything else, are not."""

import pytest
import torch

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


@pytest.mark.parametrize("options", [{"contract": "faithful"}, {"formula": "tanh"}])
def test_nothing_is_excused_when_more_is_asked_than_declared(options):
    finding = _finding(FAILED)
    assert _apply(finding, options) == (finding,)


@pytest.mark.parametrize("options", [{"replay": ((0x3F80,),)}, {"depth": "quick"}])
def test_absence_proves_nothing_when_only_some_inputs_ran(options):
    finding = _finding(PASSED)
    assert _apply(finding, options) == (finding,)
    assert _apply(_finding(FAILED), options)[0].status is KNOWN
