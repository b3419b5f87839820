"""``gelu_verify.check``: the same from Python."""

import functools
import subprocess
import sys

import pytest
import torch

import gelu_verify
from gelu_verify.errors import ContractBroken, UsageError
from gelu_verify.records import Status
from tests import faulty_kernels as kernels

QUICK = {"format": "fp32", "sweep": "quick"}


def my_gelu_backward(dy, x):
    return kernels.correct_backward(dy, x)


def test_function_is_checked_forward_and_backward_when_given():
    done = gelu_verify.check(torch.nn.functional.relu, formula="erf", **QUICK)
    assert [(k.operator, k.via) for k in done.kernels] == [
        ("gelu", None),
        ("gelu_backward", "autograd"),
    ]
    assert done.exit_status == 1
    with pytest.raises(ContractBroken, match="declared erf, computes none of the known formulas"):
        done.raise_if_failed()


def test_results_are_returned_when_a_function_is_sound():
    done = gelu_verify.check(kernels.correct, **QUICK).raise_if_failed()
    assert done.kernels[0].tightest.contract in ("correctly_rounded", "faithful")
    assert done.kernels[0].target == "tests.faulty_kernels:_once.<locals>.kernel"


def test_backward_is_guessed_when_the_function_is_called_so():
    done = gelu_verify.check(my_gelu_backward, **QUICK).raise_if_failed()
    assert [k.operator for k in done.kernels] == ["gelu_backward"]


@pytest.mark.parametrize(
    "kernel",
    [
        torch.nn.GELU(),
        functools.partial(torch.nn.functional.gelu, approximate="none"),
        torch.ops.aten.gelu,
        lambda x: torch.nn.functional.gelu(x + 0),
    ],
)
def test_any_callable_is_taken_when_it_maps_tensors(kernel):
    done = gelu_verify.check(kernel, operator="gelu", format="bf16", contract="approximation")
    assert done.kernels[0].status in (Status.PASSED, Status.FAILED)
    assert done.kernels[0].formula_found.found == "erf"


def test_no_command_is_claimed_when_no_name_leads_to_the_function():
    done = gelu_verify.check(lambda x: x, **QUICK)
    assert done.kernels[0].failures
    assert all(f.reproduce is None for f in done.kernels[0].failures)
    named = gelu_verify.check(kernels.sign_flips_at_one, **QUICK)
    assert "check tests.faulty_kernels:sign_flips_at_one" in named.kernels[0].failures[0].reproduce


@pytest.mark.parametrize(
    ("kernel", "options", "message"),
    [
        (3, {}, "kernel: got int, expected a function of torch tensors or a name."),
        (lambda: 1, {}, "got signature ()"),
        (kernels.correct, {"format": "fp31"}, "Did you mean fp32?"),
        (kernels.correct, {"format": ["fp32", "bf17"]}, "Did you mean bf16?"),
        (kernels.correct, {"formula": "none"}, "approximate='none' is the erf formula"),
        (kernels.correct, {"operator": "gelu_bakward"}, "Did you mean gelu_backward?"),
        (kernels.correct, {"contract": "faithfull"}, "Did you mean faithful?"),
        (kernels.correct, {"sweep": "exhaustiv"}, "Did you mean exhaustive?"),
        (kernels.correct, {"device": "gpu"}, "device: got 'gpu'"),
        (kernels.correct, {"seed": -1}, "seed: got -1"),
        ("torch-erff", {}, "Did you mean torch-erf?"),
        ("torch-erf", {"timeout": 0}, "timeout: got 0"),
    ],
)
def test_usage_error_is_raised_when_an_argument_is_wrong(kernel, options, message):
    with pytest.raises(UsageError) as caught:
        gelu_verify.check(kernel, **options)
    assert message in str(caught.value)


def test_kernel_runs_in_a_child_when_it_is_named():
    done = gelu_verify.check("torch.ops.aten.gelu", contract="approximation", **QUICK)
    assert done.kernels[0].name == "torch.ops.aten.gelu"
    assert done.kernels[0].accuracy.count > 10_000


def test_importing_is_cheap_when_nothing_is_checked():
    code = "import sys, gelu_verify; print('torch' in sys.modules, gelu_verify.__version__)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False 0.1.0\n"
    with pytest.raises(AttributeError, match="no attribute 'chek'"):
        _ = gelu_verify.chek
