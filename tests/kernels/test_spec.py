"""What a kernel declares: where a known issue applies."""

import pytest
import torch
from pydantic import ValidationError

from gelu_verify.kernels.spec import KernelSpec, KnownIssue

CAPABILITY = torch.backends.cpu.get_cpu_capability()


def _issue(**more):
    fields = {"check": "accuracy", "formats": ("bf16",), "link": "https://example.org/1"}
    return KnownIssue(**fields, **{"summary": "s", **more})


@pytest.mark.parametrize(
    ("more", "expected"),
    [
        ({}, True),
        ({"versions": ">=1.0"}, True),
        ({"versions": "<1.0"}, False),
        ({"versions": ">=1.0,<900"}, True),
        ({"instruction_sets": (CAPABILITY,)}, True),
        ({"instruction_sets": ("VSX",)}, False),
        ({"package": "no-such-package-xyz"}, False),
        ({"devices": ("cuda",)}, False),
        ({"operator": "gelu_backward"}, False),
        ({"sweeps": ("quick", "standard")}, True),
        ({"sweeps": ("exhaustive",)}, False),
    ],
)
def test_issue_applies_only_when_everything_declared_fits(more, expected):
    assert _issue(**more).applies("gelu", "bf16", "cpu", "standard") is expected


def test_issue_does_not_apply_when_the_format_is_another():
    assert not _issue().applies("gelu", "fp32", "cpu", "standard")


def test_instruction_set_is_not_asked_when_the_device_is_a_gpu():
    issue = _issue(devices=("cuda",), instruction_sets=("VSX",))
    assert issue.applies("gelu", "bf16", "cuda", "quick")


@pytest.mark.parametrize(
    ("inputs", "shown", "expected"),
    [
        ((), None, True),
        ((), "x = 1.0 (0x3F80)", True),
        (("inf",), "x = inf (0x7F80)", True),
        (("inf",), "x = -inf (0xFF80)", False),
        (("inf",), "x = nan (0x7FC0)", False),
        (("inf",), None, False),
        (("-0.0", "1.0"), "dy = 2.0 (0x4000), x = 1.0 (0x3F80)", True),
    ],
)
def test_issue_covers_only_its_inputs_when_it_names_some(inputs, shown, expected):
    assert _issue(inputs=inputs).covers(shown) is expected


def test_declaration_is_refused_when_it_cannot_be_meant():
    with pytest.raises(ValidationError):
        _issue(versions="newer than 2")
    with pytest.raises(ValidationError):
        KernelSpec(name="k", target="m:f", formats_="fp32")
