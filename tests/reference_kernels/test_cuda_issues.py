"""Known issues on CUDA: each is one that the committed record of a GPU shows, and no wider."""

import json
from pathlib import Path

import pytest

from gelu_verify.job import plan
from gelu_verify.kernels.registry import registered
from gelu_verify.known_issues import apply_known_issues
from gelu_verify.operators import fused
from gelu_verify.records import FindingStatus, KernelResult

RECORDS = sorted((Path(__file__).parents[2] / "reports" / "h200").glob("fused*.json"))
SHOWN = (FindingStatus.FAILED, FindingStatus.KNOWN_ISSUE)


@pytest.fixture(scope="module")
def recorded():
    read = [json.loads(path.read_text())["kernels"] for path in RECORDS]
    kernels = [KernelResult(**one) for kernels in read for one in kernels]
    return {(one.name, one.format): one for one in kernels}


def declared():
    """Return kernel, format and check of every issue of a fused operator alone on CUDA."""
    return {
        (spec.name, fmt, issue.check)
        for spec in registered().values()
        for issue in spec.known_issues
        if issue.operator in fused.NAMES and issue.devices == ("cuda",)
        for fmt in issue.formats
    }


def test_every_declared_issue_is_in_the_record(recorded):
    shown = {
        (*key, finding.check)
        for key, result in recorded.items()
        for finding in result.findings
        if finding.status in SHOWN
    }
    assert declared()
    assert not declared() - shown


@pytest.mark.parametrize(
    ("name", "fmt", "left"),
    [
        ("torch-linear-gelu", "bf16", set()),
        ("torch-linear-gelu", "fp16", set()),
        ("torch-linear-gelu-tanh", "fp32", set()),
        ("torch-linear-gelu-tanh", "bf16", set()),
        ("torch-compile-linear-gelu", "bf16", set()),
        ("torch-conv-relu-pool", "fp32", set()),
        ("torch-conv-relu-pool", "bf16", set()),
        ("torch-conv-relu-pool", "fp16", set()),
        ("torch-addmm-gelu-cuda", "fp32", {"bound", "batch", "large", "identity"}),
        ("torch-addmm-gelu-cuda", "bf16", {"bound", "large", "identity"}),
    ],
)
def test_only_what_is_declared_is_excused(recorded, name, fmt, left):
    (job,) = plan(name, format_names=(fmt,), device="cuda")
    found = apply_known_issues(recorded[name, fmt].findings, job)
    assert {one.check for one in found if one.status is FindingStatus.FAILED} == left
