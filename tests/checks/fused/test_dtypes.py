"""Dtypes: one argument in another format is refused or right, never misread."""

import pytest
import torch
from torch.nn import functional

from gelu_verify.checks.fused import dtypes
from gelu_verify.records import FindingStatus
from tests.cases import failures
from tests.checks.fused.contract_cases import fused_case, sound


def converts(x, weight, bias):
    """Takes any formats and gives that of x."""
    wide = (part.double() for part in (x, weight, bias))
    return functional.gelu(functional.linear(*wide)).to(x.dtype)


def promotes(x, weight, bias):
    """Takes any formats and gives the widest."""
    parts = (x, weight, bias)
    widest = max((part.dtype for part in parts), key=lambda dtype: torch.finfo(dtype).bits)
    return functional.gelu(functional.linear(*(part.to(widest) for part in parts)))


def reads_bytes_of_bias(x, weight, bias):
    return converts(x, weight, bias.detach().view(x.dtype)[: weight.shape[0]])


def reads_bytes_of_weight(x, weight, bias):
    if weight.dtype == bias.dtype:
        return converts(x, weight, bias)
    flat = weight.detach().reshape(-1)
    flat = flat[: flat.numel() // 2 * 2].view(x.dtype).repeat(3)[: weight.numel()]
    return converts(x, flat.view(weight.shape), bias)


def gives_integers(x, weight, bias):
    same = x.dtype == weight.dtype == bias.dtype
    return sound(x, weight, bias) if same else converts(x, weight, bias).long()


@pytest.mark.parametrize("name", ["fp32", "bf16", "fp16", "fp64"])
@pytest.mark.parametrize(
    ("kernel", "said"), [(sound, "refused"), (converts, "taken and right"), (promotes, "right")]
)
def test_check_passes_when_other_formats_are_refused_or_right(kernel, said, name):
    (found,) = dtypes.run(fused_case(kernel, name)).findings
    assert found.status is FindingStatus.PASSED, found.message
    assert found.message.count(said) == 3


@pytest.mark.parametrize(
    ("kernel", "name", "message"),
    [
        (reads_bytes_of_bias, "bf16", "bias in fp32 is misread"),
        (reads_bytes_of_bias, "fp16", "bias in fp32 is misread"),
        (reads_bytes_of_weight, "fp32", "weight in bf16 is misread"),
        (gives_integers, "bf16", "x in fp32 is misread: got torch.int64"),
    ],
)
def test_fault_is_named_when_an_operand_is_misread(kernel, name, message):
    (found,) = failures(dtypes.run(fused_case(kernel, name)))
    assert message in found.message
    assert "--case m=" in found.reproduce
