"""Large sizes: kernels whose index wraps at 2^15, 2^16 or a limit of elements."""

import pytest
import torch

from gelu_verify.checks.fused import large
from gelu_verify.records import FindingStatus
from tests.cases import failures, messages
from tests.checks.fused.contract_cases import fused_case, sound

_LIMIT = 2**14


def wraps(limit, dim):
    """The index along a dimension of the result is taken modulo a limit."""

    def kernel(x, weight, bias):
        y = sound(x, weight, bias)
        return y.index_select(dim, torch.arange(y.shape[dim]) % limit)

    return kernel


def sums_at_most(limit):
    def kernel(x, weight, bias):
        return sound(x[:, :limit], weight[:, :limit], bias)

    return kernel


def wraps_elements(limit):
    """The flat index of an element of x wraps: rows behind are those of the start."""

    def kernel(x, weight, bias):
        rows = torch.arange(x.shape[0]) % (limit // x.shape[1])
        return sound(x[rows], weight, bias)

    return kernel


def drops_behind(limit):
    """Elements behind a limit are not written."""

    def kernel(x, weight, bias):
        y = sound(x, weight, bias).detach()
        y.view(-1)[limit:] = 0
        return y

    return kernel


def test_large_passes_when_the_kernel_is_sound():
    outcome = large.run(fused_case(sound))
    assert messages(outcome) == (
        "passed: one dimension of 65,537: within the bound (3 cases)\n"
        "skipped: more than 2^31 elements: only on a CUDA device"
    )


@pytest.mark.parametrize(
    ("kernel", "case"),
    [
        (wraps(2**15, 0), "m=65537,k=3,n=3"),
        (wraps(2**16, 0), "m=65537,k=3,n=3"),
        (wraps(2**15, 1), "m=3,k=3,n=65537"),
        (wraps(2**16, 1), "m=3,k=3,n=65537"),
        (sums_at_most(2**15), "m=3,k=65537,n=3"),
    ],
)
def test_fault_is_named_when_an_index_wraps_in_one_dimension(kernel, case):
    (found, *_) = failures(large.run(fused_case(kernel)))
    assert found.input == f"case {case}"
    assert f"--case {case}" in found.reproduce
    dim, length = max(
        ((d, int(n)) for d, n in (p.split("=") for p in case.split(","))), key=lambda d: d[1]
    )
    assert found.message.startswith(f"{dim} of {length:,}: ")
    assert "break their bound" in found.message


def test_elements_beyond_a_limit_pass_when_the_kernel_is_sound():
    found = large.beyond(fused_case(sound), _LIMIT)
    assert found.status in (FindingStatus.PASSED, FindingStatus.NOTED)
    assert found.message.startswith("305 rows, those of m=67,k=64,n=64 repeated: ")
    assert "rows judged, within the bound" in found.message


@pytest.mark.parametrize("kernel", [wraps_elements(_LIMIT), drops_behind(_LIMIT)])
def test_fault_is_named_when_an_index_wraps_at_the_limit(kernel):
    found = large.beyond(fused_case(kernel), _LIMIT)
    assert found.status is FindingStatus.FAILED
    assert "305 rows, those of m=67,k=64,n=64 repeated: first at row 256: " in found.message
    assert found.reproduce
