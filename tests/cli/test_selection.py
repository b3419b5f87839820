"""``check --all``: which registered kernels, and in which formats."""

import pytest

from gelu_verify.cli import selection
from gelu_verify.errors import UsageError
from gelu_verify.kernels.spec import KernelSpec

KERNELS = {
    "wide": KernelSpec(name="wide", target="m:f", formats=("fp64", "fp32")),
    "narrow": KernelSpec(name="narrow", target="m:g", formats=("bf16", "fp16")),
    "other": KernelSpec(name="other", target="m:h", operator="geglu", formats=("fp32", "bf16")),
}


@pytest.fixture(autouse=True)
def registered(monkeypatch):
    monkeypatch.setattr(selection, "registered", lambda: KERNELS)


def test_a_kernel_is_left_out_and_counted_when_it_does_not_declare_the_format(capsys):
    assert selection.declared(None, ("bf16",)) == [("narrow", ("bf16",)), ("other", ("bf16",))]
    told = "Left out 1 of 3 kernels, which do not declare bf16: wide.\n"
    assert capsys.readouterr() == ("", told)


def test_each_kernel_keeps_what_it_declares_when_formats_are_several(capsys):
    found = selection.declared("gelu", ("fp32", " fp16"))
    assert found == [("wide", ("fp32",)), ("narrow", ("fp16",))]
    assert capsys.readouterr() == ("", "")


def test_all_formats_of_a_kernel_when_none_is_given():
    assert dict(selection.declared("geglu", ())) == {"other": ("fp32", "bf16")}


@pytest.mark.parametrize(("operator", "formats"), [("geglu", ("fp64",)), ("attention", ())])
def test_wrong_usage_when_no_kernel_is_left(operator, formats):
    with pytest.raises(UsageError, match=f"got none registered for {operator}"):
        selection.declared(operator, formats)
